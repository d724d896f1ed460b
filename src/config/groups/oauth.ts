// The login of people: all that each mode needs, put together.
import { oneOf } from '../rules.ts';
import { defineSetting, type Read, readAll, requireValue } from '../setting.ts';
import {
  type ClientsConfig,
  type ConsentConfig,
  consentSettings,
  readClientsConfig,
} from './clients.ts';
import {
  type BrokerRequestConfig,
  brokerSettings,
  type IdentityConfig,
  readIdentityConfig,
  readTokensConfig,
  type TokensConfig,
} from './own-tokens.ts';
import {
  clientId,
  type IdJagConfig,
  isBrokerMode,
  mode,
  type ProviderClientConfig,
  type ProviderConfig,
  providerSettings,
  readIdJagConfig,
  readProviderClient,
} from './provider.ts';
import { readStateSecret, type StateSecret, type StoreConfig, stateSecrets } from './store.ts';

export type OAuthConfig = BrokerConfig | ProxyConfig;

/** The gateway is an authorization server of its own, and a client of the provider. */
export interface BrokerConfig extends CommonConfig, BrokerRequestConfig {
  readonly mode: 'broker';
  readonly provider: ProviderConfig;
  readonly providerClient: ProviderClientConfig & { readonly id: string };
  readonly consent: ConsentConfig;
  readonly stateSecret: StateSecret;
  /** The tokens that clients get. */
  readonly tokens: TokensConfig;
  /** The questions to the provider about a user, and who may log in. */
  readonly identity: IdentityConfig;
  /** The issuers whose assertions stand for a login. */
  readonly idJag: IdJagConfig;
}

/** §4.6, §4.7: clients are sent on to the provider. With a consent page there are records to seal. */
export type ProxyConfig = ProxyBase &
  (
    | { readonly consent: ConsentConfig<'page'>; readonly stateSecret: StateSecret }
    | { readonly consent: ConsentConfig<'off'>; readonly stateSecret: StateSecret | undefined }
  );

interface ProxyBase extends CommonConfig {
  readonly mode: 'proxy';
  readonly provider: ProviderConfig | undefined;
  /** Which issuer the metadata names: the gateway, or the provider. */
  readonly metadataIssuer: 'self' | 'upstream';
}

interface CommonConfig extends ClientsConfig, ReturnType<typeof readProviderClient> {
  /** True if `OAUTH_MODE` is set, and the mode not merely the default. */
  readonly isModeSet: boolean;
  /** True if web clients may log in through a popup. */
  readonly popups: boolean;
}

const metadataIssuer = defineSetting('OAUTH_METADATA_ISSUER', oneOf('self', 'upstream'), {
  default: { value: 'upstream' },
  summary: 'Which issuer the metadata names.',
  details:
    '`upstream` is the provider. `self` is the gateway, on which clients of the current generation insist; in broker mode it is always the gateway.',
  mode: 'proxy',
});

export const loginSettings = {
  mode,
  consent: consentSettings.kind,
  consentTtlSeconds: consentSettings.ttlSeconds,
  popups: consentSettings.popups,
  stateSecrets,
  metadataIssuer,
};

interface OAuthFacts {
  readonly provider: ProviderConfig | undefined;
  readonly store: StoreConfig;
  readonly isModeSet: boolean;
}

export function readOAuthConfig(
  read: Read,
  { provider, store, isModeSet }: OAuthFacts,
): OAuthConfig {
  const kind = read(consentSettings.kind);
  const ttlSeconds = read(consentSettings.ttlSeconds);
  const stateSecret = readStateSecret(read, store);
  const inBothModes = {
    ...readClientsConfig(read),
    isModeSet,
    ...readProviderClient(read),
    popups: read(consentSettings.popups),
  };
  if (isBrokerMode(read)) {
    return {
      ...inBothModes,
      ...readAll(brokerSettings, read),
      mode: 'broker',
      provider: requireValue(provider, providerSettings.issuer),
      providerClient: {
        ...inBothModes.providerClient,
        id: requireValue(inBothModes.providerClient.id, clientId),
      },
      consent: { kind, ttlSeconds },
      stateSecret: requireValue(stateSecret, stateSecrets),
      tokens: readTokensConfig(read),
      identity: readIdentityConfig(read),
      idJag: readIdJagConfig(read),
    };
  }
  const proxy = {
    ...inBothModes,
    mode: 'proxy',
    provider,
    metadataIssuer: read(metadataIssuer),
  } as const;
  if (kind === 'off') return { ...proxy, consent: { kind, ttlSeconds }, stateSecret };
  return {
    ...proxy,
    consent: { kind, ttlSeconds },
    stateSecret: requireValue(stateSecret, stateSecrets),
  };
}
