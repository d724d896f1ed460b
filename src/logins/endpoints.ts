// §4.1, §4.6–§4.10: the OAuth endpoints, and the metadata documents that lead to them.

import type { Config } from '../config/config.ts';
import { DEFAULT_SCOPES } from '../config/rules.ts';
import { fail } from '../errors/gateway-error.ts';
import type {
  ChosenLimit,
  Endpoint,
  NamedPaths,
  OpenEndpoint,
  PublicEndpoint,
} from '../http/endpoint/endpoint.ts';
import {
  createJsonReply,
  type GatewayRequest,
  getHeader,
  type Reply,
  type RequestBody,
} from '../http/endpoint/message.ts';
import type { Browser, OwnPages } from '../http/endpoint/own-pages.ts';
import { parseBody } from '../http/endpoint/parameters.ts';
import { type ErrorFormat, JSONRPC, OAUTH } from '../http/endpoint/render-error.ts';
import {
  type ProviderMetadata,
  requireProviderDocument,
} from '../http/oauth-client/provider-metadata.ts';
import { algorithms } from './auth/jwk.ts';
import type { FindMachineLogin } from './broker/client-credentials.ts';
import type { Approval } from './consent/browser.ts';
import { type LoginIndex, readAskedTokens } from './refresh/recent-answers.ts';
import type {
  AuthorizationRequest,
  ReadAuthorizationRequest,
} from './request/authorization-request.ts';
import { JWT_BEARER, readAskedFacts } from './request/login-facts.ts';

type Judge = PublicEndpoint['judge'];

/** The endpoints of one mode. Each checks the request, and returns the work to run after it was counted. */
export interface ModeAtEndpoints {
  /** `iss` of replies to clients (RFC 9207), if the gateway is the issuer. */
  readonly issuer?: string;
  readonly readRequest: ReadAuthorizationRequest;
  /** Sends an approved request's browser to the provider. Without `approval` there was no consent page. */
  readonly redirectToProvider: (
    request: AuthorizationRequest,
    browser: Browser,
    approval?: Approval,
  ) => Promise<Reply>;
  /** @throws GatewayError for an invalid request. */
  readonly token: Judge;
  /** Refreshes are counted by login, so that one client's storm does not affect other clients. */
  readonly logins: LoginIndex;
  /** Undefined if no client can authenticate. */
  readonly findMachineLogin?: FindMachineLogin;
  readonly revoke: Judge;
  /** Undefined in proxy mode. */
  readonly callback?: Judge;
  /** Pages for users, and back-channel logout. None in proxy mode. */
  readonly ownEndpoints: readonly Endpoint[];
  /** For other features with pages for users. Undefined in proxy mode. */
  readonly ownPages?: OwnPages;
}

/** The endpoints where a client registers, and where its user approves it. */
export interface OAuthFront {
  readonly authorize: Judge;
  /** The form of the consent page; undefined without one. */
  readonly consent?: Judge;
  readonly register: Judge;
}

/** `popups` is `OAUTH_POPUPS`: login pages keep their opener. */
export function createOAuthEndpoints(
  popups: boolean,
  mode: ModeAtEndpoints,
  { authorize, consent, register }: OAuthFront,
): readonly Endpoint[] {
  const { token, revoke, callback, ownEndpoints } = mode;
  const loginPage = {
    ...PUBLIC,
    hasErrorPages: true,
    refusesScripts: true,
    ...(popups && { headers: { 'Cross-Origin-Opener-Policy': 'unsafe-none' } }),
  };
  const endpoints: readonly (PublicEndpoint | undefined)[] = [
    {
      ...loginPage,
      method: 'GET',
      path: '/oauth/authorize',
      limit: 'authorize',
      hasErrorPages: callback !== undefined,
      refusesScripts: consent !== undefined || callback !== undefined,
      judge: authorize,
    },
    consent && {
      ...loginPage,
      ...FORM,
      method: 'POST',
      path: '/oauth/consent',
      limit: 'consent',
      judge: consent,
    },
    callback && {
      ...loginPage,
      method: 'GET',
      path: '/oauth/callback',
      limit: 'callback',
      judge: callback,
    },
    {
      ...PUBLIC,
      ...FORM,
      method: 'POST',
      path: '/oauth/token',
      errors: TOKEN_ERRORS,
      limit: 'token',
      chooseLimit: createChooseTokenLimit(mode),
      judge: token,
    },
    {
      ...PUBLIC,
      method: 'POST',
      path: '/oauth/register',
      errors: REGISTRATION_ERRORS,
      limit: 'dcr',
      body: 'json',
      maxBodyBytes: MAX_BODY_BYTES,
      judge: register,
    },
    {
      ...PUBLIC,
      ...FORM,
      method: 'POST',
      path: '/oauth/revoke',
      errors: TOKEN_ERRORS,
      limit: 'token',
      judge: revoke,
    },
  ];
  return [...endpoints.filter((one) => one !== undefined), ...ownEndpoints];
}

const PUBLIC = { kind: 'public', errors: OAUTH } as const;

/** RFC 6749 §5.2: clients parse an OAuth error, and treat any other reply as the end of the login. */
const TOKEN_ERRORS: ErrorFormat = { ...OAUTH, limit: 'temporarily_unavailable' };

const REGISTRATION_ERRORS: ErrorFormat = { form: 'oauth', body: 'invalid_client_metadata' };

/** Open to everyone: enough for ten redirect URIs and all other members. */
const MAX_BODY_BYTES = 65_536;

const FORM = { body: 'json or form', maxBodyBytes: MAX_BODY_BYTES } as const;

// §8: refreshes are counted by login, authenticated clients by client, and all other token requests by address.

const createChooseTokenLimit = ({
  logins: { findKnownId, findLogin },
  findMachineLogin,
}: ModeAtEndpoints) =>
  function chooseTokenLimit(body: RequestBody, request: GatewayRequest): ChosenLimit {
    const { grant } = readAskedFacts(body);
    if ((grant === 'client_credentials' || grant === JWT_BEARER) && findMachineLogin) {
      const login = findMachineLogin(body, getHeader(request, 'authorization'));
      return { group: 'machine', ...(login && { login }) };
    }
    if (grant !== 'refresh_token') return { group: 'token' };
    try {
      const parameters = parseBody(body);
      const refreshToken = parameters.require('refresh_token');
      const clientId = parameters.require('client_id');
      const find = () => findLogin(refreshToken, readAskedTokens(parameters, clientId));
      return { group: 'refresh', login: { knownId: findKnownId(refreshToken, clientId), find } };
    } catch {
      // An error in the request is reported once the request has been counted.
      return { group: 'refresh' };
    }
  };

// §4.1, §4.9, §4.10: the metadata documents.

export function createDiscoveryEndpoints(
  baseUrl: string,
  { getMetadata, getOpenidConfiguration }: ReturnType<typeof createServerMetadata>,
  { has, getTitle }: NamedPaths,
): readonly Endpoint[] {
  // Clients derive the path of the second one from the endpoint (RFC 9728 §3.1).
  const ofGateway = renderResourceMetadata(baseUrl, '');
  const ofEndpoint = renderResourceMetadata(baseUrl, '/mcp');
  return [
    createMetadataEndpoint('oauth-protected-resource', JSONRPC, () => ofGateway),
    createMetadataEndpoint('oauth-protected-resource/mcp', JSONRPC, () => ofEndpoint),
    // §18.2, §25.1: for `/mcp/<server>` and `/mcp/<view>`. The `resource` of each is its own URL, because clients compare it with
    // the URL that they called (RFC 9728 §3.3).
    {
      ...createMetadataEndpoint('oauth-protected-resource/mcp/:server', JSONRPC, ({ path }) => {
        const name = path.slice(path.lastIndexOf('/') + 1);
        return has(name)
          ? renderResourceMetadata(baseUrl, `/mcp/${name}`, getTitle(name))
          : fail('not_found');
      }),
      hasParameter: has,
    },
    createMetadataEndpoint('oauth-authorization-server', OAUTH, getMetadata),
    createMetadataEndpoint('openid-configuration', OAUTH, getOpenidConfiguration),
  ];
}

const createMetadataEndpoint = (
  name: string,
  errors: ErrorFormat,
  handle: OpenEndpoint['handle'],
): OpenEndpoint => ({ kind: 'open', method: 'GET', path: `/.well-known/${name}`, errors, handle });

// §4.9, RFC 9728: protected resource metadata.

/** `path` is the resource's path below BASE_URL: empty for the gateway itself. */
const renderResourceMetadata = (baseUrl: string, path: string, title?: string) =>
  renderMetadata({
    resource: baseUrl + path,
    ...(title !== undefined && { resource_name: title }),
    authorization_servers: [baseUrl],
    scopes_supported: DEFAULT_SCOPES,
    bearer_methods_supported: ['header'],
    resource_documentation: `${baseUrl}/`,
  });

// §4.10, RFC 8414: authorization server metadata.

/**
 * The two documents that name the gateway's endpoints. `providerMetadata` is the provider's discovery document, itself cached for
 * five minutes and served stale; undefined without an issuer. `isOffered` says whether client documents are accepted,
 * `hasMachineClients` whether clients can authenticate.
 */
export function createServerMetadata(
  { server, oauth }: Config,
  providerMetadata: ProviderMetadata | undefined,
  isOffered: () => Promise<boolean>,
  hasMachineClients: () => boolean,
) {
  const { baseUrl } = server;
  const { provider, endpoints } = oauth;
  const isBroker = oauth.mode === 'broker';

  async function load() {
    if (providerMetadata === undefined) fail('not_found', { details: 'OIDC_ISSUER is not set.' });
    const [document, areDocumentsOffered] = await Promise.all([
      // With OIDC_JWKS_URL, nothing in the documents depends on the provider's answer.
      provider?.jwksUrl === undefined
        ? requireProviderDocument(providerMetadata)
        : providerMetadata.get().catch(() => undefined),
      isOffered(),
    ]);
    const members = {
      issuer: isBroker || oauth.metadataIssuer === 'self' ? baseUrl : provider?.issuer,
      authorization_endpoint: `${baseUrl}/oauth/authorize`,
      token_endpoint: `${baseUrl}/oauth/token`,
      registration_endpoint: `${baseUrl}/oauth/register`,
      ...((isBroker || endpoints.revocationUrl !== undefined) && {
        revocation_endpoint: `${baseUrl}/oauth/revoke`,
      }),
      jwks_uri: provider?.jwksUrl ?? document?.jwks_uri,
      scopes_supported: DEFAULT_SCOPES,
      response_types_supported: ['code'],
      grant_types_supported: PUBLIC_GRANTS,
      token_endpoint_auth_methods_supported: PUBLIC_METHODS,
      code_challenge_methods_supported: ['S256'],
      // RFC 9207 §3: the callback is ours, and so is the response to clients.
      ...(isBroker && { authorization_response_iss_parameter_supported: true }),
      ...(areDocumentsOffered && { client_id_metadata_document_supported: true }),
      ...describeProvenClients(hasMachineClients(), isBroker && oauth.idJag.isEnabled),
    };
    return { document, members };
  }

  return {
    async getMetadata() {
      return renderMetadata((await load()).members);
    },
    // OpenID clients require the two further members.
    async getOpenidConfiguration() {
      const { document, members } = await load();
      return renderMetadata({
        ...members,
        subject_types_supported: ['public'],
        // RS256 for providers that list none (OpenID Connect Core §3.1.3.7).
        id_token_signing_alg_values_supported: document?.id_token_signing_alg_values_supported ?? [
          'RS256',
        ],
      });
    },
  };
}

const PUBLIC_GRANTS = ['authorization_code', 'refresh_token'] as const;

/** Registered clients are public. `none` stays the first method: registering clients take the first. */
const PUBLIC_METHODS = ['none'] as const;

/** Grants and methods of clients that authenticate. */
function describeProvenClients(hasMachineClients: boolean, takesAssertions: boolean) {
  if (!hasMachineClients && !takesAssertions) return {};
  return {
    grant_types_supported: [
      ...PUBLIC_GRANTS,
      ...(hasMachineClients ? ['client_credentials'] : []),
      ...(takesAssertions ? [JWT_BEARER] : []),
    ],
    token_endpoint_auth_methods_supported: [
      ...PUBLIC_METHODS,
      ...(hasMachineClients ? ['client_secret_basic', 'client_secret_post'] : []),
      'private_key_jwt',
    ],
    token_endpoint_auth_signing_alg_values_supported: [...algorithms.keys()],
    // draft-ietf-oauth-identity-assertion-authz-grant §7.2.
    ...(takesAssertions && { authorization_grant_profiles_supported: [ID_JAG_PROFILE] }),
  };
}

const ID_JAG_PROFILE = 'urn:ietf:params:oauth:grant-profile:id-jag';

/** A metadata document, which clients and caches may keep for five minutes. */
const renderMetadata = (document: unknown) =>
  createJsonReply(200, document, { 'Cache-Control': 'public, max-age=300' });
