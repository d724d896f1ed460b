// The login of people: all that each mode needs, put together.
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

/** The gateway is an authorization server of its own, and a client of the provider. */
export type BrokerConfig = Extract<OAuthConfig, { readonly mode: 'broker' }>;

/** §4.6, §4.7: clients are sent on to the provider. With a consent page there are records to seal. */
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
    /** True if `OAUTH_MODE` is set, and the mode not merely the default. */
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
      /** The tokens that clients get. */
      tokens: readTokensConfig(read),
      /** The questions to the provider about a user, and who may log in. */
      identity: readIdentityConfig(read),
      /** The issuers whose assertions stand for a login. */
      idJag: readAll(idJagSettings, read),
    };
  }
  const proxy = {
    ...inBothModes,
    mode: 'proxy' as const,
    provider,
    /** Which issuer the metadata names: the gateway, or the provider. */
    metadataIssuer: read(metadataIssuer),
  };
  if (kind === 'off') return { ...proxy, consent: { kind, ttlSeconds }, stateSecret };
  return {
    ...proxy,
    consent: { kind, ttlSeconds },
    stateSecret: requireValue(stateSecret, stateSecrets),
  };
}
