// How people log in: the mode, the consent page, and what seals a login.
import { ONE_YEAR_SECONDS, THIRTY_DAYS_SECONDS } from '../durations.ts';
import { flag, httpUrl, integer, list, oneOf, type Rule } from '../rules.ts';
import { derived, fixed, none, type Read, requireValue, setting } from '../setting.ts';
import { type BrokerRequestConfig, readBrokerRequest } from './broker.ts';
import { type ClientsConfig, readClientsConfig } from './clients.ts';
import { mode } from './oauth-mode.ts';
import {
  type ProviderClientConfig,
  type ProviderConfig,
  providerSettings,
  readProviderClient,
} from './provider.ts';
import type { StoreConfig } from './store.ts';

export type OAuthConfig = BrokerConfig | ProxyConfig;

/** The gateway is an authorization server of its own, and a client of the provider. */
export interface BrokerConfig extends CommonConfig, BrokerRequestConfig {
  readonly mode: 'broker';
  readonly provider: ProviderConfig;
  readonly providerClient: ProviderClientConfig & { readonly id: string };
  readonly consent: ConsentConfig;
  readonly stateSecret: StateSecret;
}

/** Spec §4.6, §4.7: clients are sent on to the provider. With a consent page there are records to seal. */
export type ProxyConfig = ProxyCommonConfig &
  (
    | { readonly consent: ConsentConfig<'page'>; readonly stateSecret: StateSecret }
    | { readonly consent: ConsentConfig<'off'>; readonly stateSecret: StateSecret | undefined }
  );

interface ProxyCommonConfig extends CommonConfig {
  readonly mode: 'proxy';
  readonly provider: ProviderConfig | undefined;
  /** Which issuer the metadata names: the gateway, or the provider. */
  readonly metadataIssuer: 'self' | 'upstream';
}

interface CommonConfig extends ClientsConfig {
  readonly providerClient: ProviderClientConfig;
  /** Where the provider is; in broker mode the discovery document says what is not set. */
  readonly endpoints: {
    readonly authorizationUrl: string | undefined;
    readonly tokenUrl: string | undefined;
    readonly revocationUrl: string | undefined;
  };
  /** Whether web clients may log in through a popup. */
  readonly popups: boolean;
}

export interface ConsentConfig<Kind extends 'page' | 'off' = 'page' | 'off'> {
  /** `page`: the user is asked before a client may log in. */
  readonly kind: Kind;
  /** For how long an approval is remembered; 0 asks every time. */
  readonly ttlSeconds: number;
}

/** What seals the records of a login. */
export type StateSecret =
  /** `OAUTH_STATE_SECRET`: the first seals, all open. Never empty. */
  | { readonly kind: 'given'; readonly secrets: readonly string[] }
  /** Made at the first start, and kept in a file; for one process. */
  | { readonly kind: 'kept'; readonly dataDir: string };

const MIN_SECRET_BYTES = 32;

const secret: Rule<string> = {
  parse: (text) => (Buffer.byteLength(text) >= MIN_SECRET_BYTES ? text : undefined),
  allowed: 'a secret',
};

export const oauthSettings = {
  mode,
  consent: setting<'page' | 'off'>({
    variable: 'OAUTH_CONSENT',
    rule: oneOf('page', 'off'),
    default: derived('page with OAUTH_MODE=broker, else off', (read) =>
      read(mode) === 'broker' ? 'page' : 'off',
    ),
    help: 'page asks the user before a client may log in. off leaves that to the provider, which sees one client only.',
  }),
  consentTtlSeconds: setting({
    variable: 'OAUTH_CONSENT_TTL_SECONDS',
    rule: integer(0, ONE_YEAR_SECONDS),
    default: fixed(THIRTY_DAYS_SECONDS),
    help: 'Seconds for which an approval is remembered, per browser, client and redirect URI; 0 asks every time.',
  }),
  popups: setting({
    variable: 'OAUTH_POPUPS',
    rule: flag,
    default: fixed(false),
    help: 'true lets web clients log in through a popup: Cross-Origin-Opener-Policy is unsafe-none on the pages of the login.',
  }),
  stateSecrets: setting<readonly string[] | undefined>({
    variable: 'OAUTH_STATE_SECRET',
    rule: list(secret, `a comma list of secrets of at least ${MIN_SECRET_BYTES} bytes each`),
    default: derived('made and kept in DATA_DIR with the embedded store', () => undefined),
    help: 'Seals what a login leaves in the store, requestState, and messages between replicas. The first of several seals, all open: put a new one in front, and take the old one away an hour later. Required with REDIS_URL where OAUTH_MODE=broker or OAUTH_CONSENT=page.',
    secret: true,
  }),
  authorizationUrl: setting({
    variable: 'OAUTH_AUTHORIZATION_URL',
    rule: httpUrl,
    default: none,
    help: "The provider's authorization endpoint. A query in it is kept and wins over the client's parameters (for example scope). Unset: /oauth/authorize answers server_error.",
  }),
  tokenUrl: setting({
    variable: 'OAUTH_TOKEN_URL',
    rule: httpUrl,
    default: none,
    help: "The provider's token endpoint. Unset: /oauth/token answers server_error.",
  }),
  revocationUrl: setting({
    variable: 'OAUTH_REVOCATION_URL',
    rule: httpUrl,
    default: none,
    help: "The provider's revocation endpoint (RFC 7009). Unset: /oauth/revoke answers server_error.",
  }),
  metadataIssuer: setting<'self' | 'upstream'>({
    variable: 'OAUTH_METADATA_ISSUER',
    rule: oneOf('self', 'upstream'),
    default: derived('upstream (self with OAUTH_MODE=broker)', (read) =>
      read(mode) === 'broker' ? 'self' : 'upstream',
    ),
    help: 'Which issuer the metadata names with OAUTH_MODE=proxy: the provider (upstream), or the gateway (self), on which clients of the current generation insist.',
  }),
};

/** Whether a login leaves records in the store, which nobody else may read or forge. */
export const needsStateSecret = (read: Read): boolean =>
  read(mode) === 'broker' || read(oauthSettings.consent) === 'page';

export function readOAuthConfig(
  read: Read,
  provider: ProviderConfig | undefined,
  store: StoreConfig,
): OAuthConfig {
  const providerClient = readProviderClient(read);
  const stateSecret = readStateSecret(read, store);
  const kind = read(oauthSettings.consent);
  const ttlSeconds = read(oauthSettings.consentTtlSeconds);
  const common = {
    ...readClientsConfig(read),
    providerClient,
    endpoints: {
      authorizationUrl: read(oauthSettings.authorizationUrl),
      tokenUrl: read(oauthSettings.tokenUrl),
      revocationUrl: read(oauthSettings.revocationUrl),
    },
    popups: read(oauthSettings.popups),
  };
  if (read(mode) === 'broker') {
    const id = requireValue(providerClient.id, providerSettings.clientId);
    return {
      ...common,
      ...readBrokerRequest(read),
      mode: 'broker',
      provider: requireValue(provider, providerSettings.issuer),
      providerClient: { ...providerClient, id },
      consent: { kind, ttlSeconds },
      stateSecret: requireValue(stateSecret, oauthSettings.stateSecrets),
    };
  }
  const proxy = {
    ...common,
    mode: 'proxy',
    provider,
    metadataIssuer: read(oauthSettings.metadataIssuer),
  } as const;
  if (kind === 'off') return { ...proxy, consent: { kind, ttlSeconds }, stateSecret };
  return {
    ...proxy,
    consent: { kind, ttlSeconds },
    stateSecret: requireValue(stateSecret, oauthSettings.stateSecrets),
  };
}

function readStateSecret(read: Read, store: StoreConfig): StateSecret | undefined {
  const secrets = read(oauthSettings.stateSecrets);
  if (secrets !== undefined) return { kind: 'given', secrets };
  // Replicas would each keep another one.
  if (!needsStateSecret(read) || store.kind === 'redis') return undefined;
  return { kind: 'kept', dataDir: store.dataDir };
}
