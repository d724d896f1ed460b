// OAUTH_STATE_SECRET: what seals the records of a login.
import { list, type Rule } from '../rules.ts';
import { defineSetting, type Read } from '../setting.ts';
import { consentSettings } from './consent.ts';
import { mode, type OAuthMode } from './oauth-mode.ts';
import { isSharedStore, type StoreConfig } from './store.ts';

export type StateSecret =
  /** `OAUTH_STATE_SECRET`: the first seals, all open. Never empty. */
  | { readonly kind: 'given'; readonly secrets: readonly string[] }
  /** Made at the first start, and kept in a file; for one process. */
  | { readonly kind: 'kept'; readonly dataDir: string };

export const MIN_SECRET_BYTES = 32;

export const isLongEnough = (secretText: string): boolean =>
  Buffer.byteLength(secretText) >= MIN_SECRET_BYTES;

const secret: Rule<string> = {
  parse: (text) => (isLongEnough(text) ? text : undefined),
  allowed: 'a secret',
};

const secretList = list(
  secret,
  `at least ${MIN_SECRET_BYTES} bytes, for example the output of \`openssl rand -base64 48\`; separate several with commas`,
);

export const stateSecrets = defineSetting('OAUTH_STATE_SECRET', secretList, {
  default: { text: 'kept in DATA_DIR', compute: () => undefined },
  summary: 'Seals what a login leaves in the store.',
  details:
    'It also seals `requestState` and messages between replicas. All replicas need the same one: it is required with REDIS_URL if OAUTH_MODE=broker or OAUTH_CONSENT=page, or if a server of the configuration file has `identity`. With the embedded store, it is made at the first start and kept in DATA_DIR. Of several, the first seals and all open: [Deploy](deploy.md#change-a-secret) has the steps to change it.',
  isSecret: true,
});

/** Whether a login leaves records in the store, which nobody else may read or forge. */
export const needsStateSecret = (oauthMode: OAuthMode, consent: 'page' | 'off'): boolean =>
  oauthMode === 'broker' || consent === 'page';

export function readStateSecret(read: Read, store: StoreConfig): StateSecret | undefined {
  const secrets = read(stateSecrets);
  if (secrets !== undefined) return { kind: 'given', secrets };
  // Replicas would each keep another one.
  if (!needsStateSecret(read(mode), read(consentSettings.kind)) || isSharedStore(store))
    return undefined;
  return { kind: 'kept', dataDir: store.dataDir };
}
