import type { ClientMetadata, Configuration, errors, ResourceServer } from 'oidc-provider';
import type { ProviderKeys } from './keys.ts';
import { type Accounts, LOGIN_PATH } from './login.ts';

export interface DevProviderSettings {
  /** BASE_URL of the gateway: tokens are made for it and for what is below it (RFC 8707). */
  readonly gatewayUrl: string;
  /** Audiences that the gateway accepts; the first stands in for a resource that is none. */
  readonly audience: readonly [string, ...string[]];
  /** The client that the gateway uses; public without a secret. */
  readonly client: {
    readonly id: string;
    readonly secret?: string;
    readonly auth?: 'post' | 'basic';
  };
  readonly accessTokenTtlSeconds: number;
}

const ONE_DAY_SECONDS = 86_400;

export const SCOPES = ['openid', 'profile', 'email', 'offline_access'];

export function createProviderConfiguration(
  settings: DevProviderSettings,
  { keys, accounts }: { readonly keys: ProviderKeys; readonly accounts: Accounts },
  InvalidTarget: typeof errors.InvalidTarget,
): Configuration {
  const { createClaims } = accounts;
  return {
    clients: [createClientMetadata(settings.client)],
    jwks: { keys: [keys.signing] },
    cookies: { keys: [keys.cookie] },
    scopes: SCOPES,
    claims: { openid: ['sub'], profile: ['name', 'groups'], email: ['email'] },
    pkce: { required: () => true },
    interactions: { url: (_ctx, { uid }) => `${LOGIN_PATH}${uid}` },
    findAccount: (_ctx, accountId) => ({
      accountId,
      claims: () => ({ sub: accountId, ...createClaims(accountId) }),
    }),
    extraTokenClaims: (_ctx, token) =>
      'accountId' in token && token.accountId ? createClaims(token.accountId) : undefined,
    issueRefreshToken: () => true,
    rotateRefreshToken: true,
    expiresWithSession: () => false,
    loadExistingGrant: async ({ oidc }) => {
      const { client, session, provider, resourceServers = {} } = oidc;
      if (!client || !session?.accountId) return undefined;
      const { clientId } = client;
      const grant = new provider.Grant({ clientId, accountId: session.accountId });
      grant.addOIDCScope(SCOPES.join(' '));
      for (const resource of Object.keys(resourceServers)) {
        grant.addResourceScope(resource, SCOPES.join(' '));
      }
      await grant.save();
      return grant;
    },
    features: {
      devInteractions: { enabled: false },
      rpInitiatedLogout: { enabled: false },
      revocation: {
        enabled: true,
        allowedPolicy: (_ctx, client, token) => token.clientId === client.clientId,
      },
      resourceIndicators: createResourceIndicators(settings, InvalidTarget),
    },
    clientBasedCORS: () => false,
    renderError: (ctx, { error, error_description }) => {
      ctx.type = 'text/plain';
      ctx.body = `${error}: ${error_description}`;
    },
    ttl: {
      AccessToken: settings.accessTokenTtlSeconds,
      AuthorizationCode: 60,
      Grant: ONE_DAY_SECONDS * 14,
      IdToken: 3600,
      Interaction: 600,
      RefreshToken: ONE_DAY_SECONDS * 14,
      Session: ONE_DAY_SECONDS,
    },
  };
}

const createClientMetadata = ({
  id,
  secret,
  auth = 'post',
}: DevProviderSettings['client']): ClientMetadata => ({
  client_id: id,
  ...(secret !== undefined && { client_secret: secret }),
  token_endpoint_auth_method: secret === undefined ? 'none' : `client_secret_${auth}`,
  // What is allowed is decided in allowLocalRedirects; one has to be named.
  redirect_uris: ['https://postern.invalid/callback'],
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
});

function createResourceIndicators(
  settings: DevProviderSettings,
  InvalidTarget: typeof errors.InvalidTarget,
): NonNullable<Configuration['features']>['resourceIndicators'] {
  const { gatewayUrl } = settings;
  return {
    enabled: true,
    defaultResource: () => `${gatewayUrl}/mcp`,
    useGrantedResource: () => true,
    getResourceServerInfo: (_ctx, resource) => {
      if (resource !== gatewayUrl && !resource.startsWith(`${gatewayUrl}/`)) {
        throw new InvalidTarget(`tokens are made for ${gatewayUrl} only`);
      }
      return describeResource(settings, resource);
    },
  };
}

/** What tokens for the gateway, or for one of its servers, look like. */
export const describeResource = (
  { audience, accessTokenTtlSeconds }: DevProviderSettings,
  resource: string,
): ResourceServer => ({
  scope: SCOPES.join(' '),
  audience: audience.includes(resource) ? resource : audience[0],
  accessTokenFormat: 'jwt',
  accessTokenTTL: accessTokenTtlSeconds,
  jwt: { sign: { alg: 'RS256' } },
});
