// User login: combines the settings that each mode needs.
import { oneOf } from '../rules.ts';
import { defineSetting, type Read, readAll, requireValue } from '../setting.ts';
import { consentSettings, readClientsConfig } from './clients.ts';
import { brokerSettings, readIdentityConfig, readTokensConfig } from './own-tokens.ts';
import {
  clientId,
  idJagSettings,
  isBrokerMode,
  mode,
  type ProviderConfig,
  providerSettings,
  readProviderClient,
} from './provider.ts';
import { readStateSecret, type StoreConfig, stateSecrets } from './store.ts';

export type OAuthConfig = ReturnType<typeof readOAuthConfig>;

/** The gateway is itself an authorization server, and a client of the provider. */
export type BrokerConfig = Extract<OAuthConfig, { readonly mode: 'broker' }>;

/** §4.6, §4.7: the gateway redirects clients to the provider. With a consent page, there are records to seal. */
export type ProxyConfig = Extract<OAuthConfig, { readonly mode: 'proxy' }>;

const metadataIssuer = defineSetting('OAUTH_METADATA_ISSUER', oneOf('self', 'upstream'), {
  default: 'upstream',
  summary: 'The issuer that the metadata names.',
  details:
    '`upstream` is the provider. `self` is the gateway, which current clients require; in broker mode it is always the gateway.',
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

export function readOAuthConfig(
  read: Read,
  provider: ProviderConfig | undefined,
  store: StoreConfig,
  isModeSet: boolean,
) {
  const kind = read(consentSettings.kind);
  const ttlSeconds = read(consentSettings.ttlSeconds);
  const stateSecret = readStateSecret(read, store);
  const inBothModes = {
    ...readClientsConfig(read),
    /** True if `OAUTH_MODE` is set explicitly. */
    isModeSet,
    ...readProviderClient(read),
    /** True if web clients may log in through a popup. */
    popups: read(consentSettings.popups),
  };
  if (isBrokerMode(read)) {
    return {
      ...inBothModes,
      ...readAll(brokerSettings, read),
      mode: 'broker' as const,
      provider: requireValue(provider, providerSettings.issuer),
      providerClient: {
        ...inBothModes.providerClient,
        id: requireValue(inBothModes.providerClient.id, clientId),
      },
      consent: { kind, ttlSeconds },
      stateSecret: requireValue(stateSecret, stateSecrets),
      /** The tokens that are issued to clients. */
      tokens: readTokensConfig(read),
      /** How to fetch user details from the provider, and which users may log in. */
      identity: readIdentityConfig(read),
      /** Issuers of assertions that replace a login. */
      idJag: readAll(idJagSettings, read),
    };
  }
  const proxy = {
    ...inBothModes,
    mode: 'proxy' as const,
    provider,
    /** The issuer in the metadata: the gateway or the provider. */
    metadataIssuer: read(metadataIssuer),
  };
  if (kind === 'off') return { ...proxy, consent: { kind, ttlSeconds }, stateSecret };
  return {
    ...proxy,
    consent: { kind, ttlSeconds },
    stateSecret: requireValue(stateSecret, stateSecrets),
  };
}
