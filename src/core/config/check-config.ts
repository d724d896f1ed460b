// A Config that was made by hand, perhaps without types: nothing that is missing or misspelled in it
// may let anyone in, or lift a limit.
import { isObject } from '../json.ts';
import type { Config } from './config.ts';
import { ConfigError } from './config-error.ts';
import { needsStateSecret, type StateSecret } from './groups/state-secret.ts';
import { loadConfig } from './load.ts';

/** @throws ConfigError with every problem at once. */
export function checkConfig(config: Config): void {
  const mistyped = findMistyped(config, chooseModel(config), 'config');
  if (mistyped.length > 0) {
    throw new ConfigError([...mistyped, 'loadConfig() returns a complete Config.']);
  }
  const unmet = REQUIREMENTS.filter(({ isMet }) => !isMet(config));
  if (unmet.length > 0) throw new ConfigError(unmet.map(({ problem }) => problem));
}

/** A complete Config of the same kinds, for the types of its members. */
function chooseModel({ store, auth, oauth, limits }: Partial<Config>): unknown {
  const open = loadConfig({ AUTH_REQUIRED: 'false' });
  const broker = loadConfig({
    OIDC_ISSUER: 'https://idp.example',
    OAUTH_MODE: 'broker',
    OAUTH_CLIENT_ID: 'client',
  });
  // A mode that there is not is a problem of its own.
  const proxy = oauth?.mode === 'proxy' ? open.oauth : { ...open.oauth, metadataIssuer: undefined };
  return {
    ...open,
    store: store?.kind === 'redis' ? { kind: 'redis', url: '', dataDir: '' } : open.store,
    auth: auth?.required === false ? open.auth : broker.auth,
    // Of the secret there are two kinds.
    oauth: oauth?.mode === 'broker' ? { ...broker.oauth, stateSecret: undefined } : proxy,
    limits: limits?.enabled === false ? { enabled: false } : open.limits,
  };
}

/** The members of the model that are missing, or of another type. */
function findMistyped(value: unknown, model: unknown, path: string): readonly string[] {
  if (model === undefined) return [];
  const type = nameType(model);
  if (nameType(value) !== type) return [`${path} must be ${type}.`];
  if (!isObject(value) || !isObject(model)) return [];
  return Object.entries(model).flatMap(([name, member]) =>
    findMistyped(value[name], member, `${path}.${name}`),
  );
}

const nameType = (value: unknown): string =>
  Array.isArray(value) ? 'a list' : isObject(value) ? 'an object' : `a ${typeof value}`;

interface Requirement {
  readonly isMet: (config: Config) => boolean;
  readonly problem: string;
}

const REQUIREMENTS: readonly Requirement[] = [
  {
    isMet: ({ oauth }) => oauth.mode === 'broker' || oauth.mode === 'proxy',
    problem: 'config.oauth.mode must be broker or proxy.',
  },
  {
    isMet: ({ oauth }) => oauth.consent.kind === 'page' || oauth.consent.kind === 'off',
    problem: 'config.oauth.consent.kind must be page or off.',
  },
  {
    isMet: ({ auth }) => !auth.required || auth.provider.issuer !== '',
    problem: 'config.auth.provider.issuer must not be empty.',
  },
  {
    isMet: ({ auth, oauth }) => !auth.required || auth.provider.issuer === oauth.provider?.issuer,
    problem: 'config.auth.provider and config.oauth.provider must be the same provider.',
  },
  {
    isMet: ({ oauth }) => oauth.mode === 'proxy' || oauth.providerClient.id !== '',
    problem: 'config.oauth.providerClient.id must not be empty.',
  },
  {
    isMet: ({ oauth }) =>
      !needsStateSecret(oauth.mode, oauth.consent.kind) || hasSecret(oauth.stateSecret),
    problem: 'config.oauth.stateSecret is missing: broker mode and the consent page need it.',
  },
];

const hasSecret = (secret: StateSecret | undefined): boolean =>
  secret?.kind === 'given' ? secret.secrets.length > 0 : Boolean(secret?.dataDir);
