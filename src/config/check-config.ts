// Validates a hand-written, possibly untyped Config: a missing or misspelled member must never let in a caller or lift a limit.
import { isObject } from '../platform/json.ts';
import type { Config } from './config.ts';
import {
  findStoreModel,
  isLongEnough,
  MIN_SECRET_BYTES,
  needsStateSecret,
  type StateSecret,
} from './groups/store.ts';
import { loadConfig } from './load.ts';
import { ConfigError } from './problem.ts';

/** @throws ConfigError with every problem at once. */
export function checkConfig(config: Config): void {
  const mistyped = findMistyped(config, chooseModel(config), 'config');
  if (mistyped.length > 0)
    throw new ConfigError([...mistyped, 'loadConfig() returns a complete Config.']);
  const problems = REQUIREMENTS.map((check) => check(config)).filter((found) => found !== true);
  if (problems.length > 0) throw new ConfigError(problems);
}

/** A complete Config of the same kinds, as a model for the types of its members. */
function chooseModel({ server, store, auth, oauth, limits, http }: Partial<Config>): unknown {
  const open = loadConfig({ AUTH_REQUIRED: 'false' });
  const broker = loadConfig({
    OIDC_ISSUER: 'https://idp.example',
    OAUTH_MODE: 'broker',
    OAUTH_CLIENT_ID: 'client',
  });
  // If the mode is unknown, this is the only problem reported; members of both modes are accepted.
  const proxy =
    oauth?.mode === 'proxy'
      ? open.oauth
      : { ...forgetTypes(broker.oauth), ...open.oauth, metadataIssuer: undefined };
  const { kind } = http?.trustProxy ?? {};
  const trustProxy = {
    kind: '',
    ...(kind === 'hops' && { hops: 1 }),
    ...(kind === 'networks' && { trusts: () => false }),
  };
  return {
    ...open,
    server: { ...open.server, workers: server?.workers === 'auto' ? 'auto' : 1 },
    store: findStoreModel(store?.kind),
    auth: auth?.required === false ? open.auth : broker.auth,
    // The secret is a union of two kinds.
    oauth: oauth?.mode === 'broker' ? { ...broker.oauth, stateSecret: undefined } : proxy,
    limits: limits?.enabled === false ? { enabled: false } : open.limits,
    http: { ...open.http, trustProxy },
  };
}

/** A model with the same members, of any type. */
const forgetTypes = (group: object): object =>
  Object.fromEntries(Object.keys(group).map((name) => [name, undefined]));

/** The members that are missing, of the wrong type, or unknown to the model. */
function findMistyped(value: unknown, model: unknown, path: string): readonly string[] {
  if (model === undefined) return [];
  const type = nameType(model);
  if (nameType(value) !== type) return [`${path} must be ${type}.`];
  if (Array.isArray(value)) return findEmptyItems(value, path);
  if (!isObject(value) || !isObject(model)) return [];
  const members = Object.entries(model).flatMap(([name, member]) =>
    findMistyped(value[name], member, `${path}.${name}`),
  );
  // Quirks differ between providers, and each of them is present only if it applies.
  const names = path.endsWith('.quirks') ? [] : Object.keys(value);
  const unknown = names.filter((name) => !Object.hasOwn(model, name));
  return [...members, ...unknown.map((name) => `${path}.${name} is unknown.`)];
}

/** A list in the settings contains strings, or pairs of strings. */
const findEmptyItems = (items: readonly unknown[], path: string): readonly string[] =>
  items.flatMap((item, index) => {
    if (Array.isArray(item)) return findEmptyItems(item, `${path}[${index}]`);
    const isText = typeof item === 'string' && item !== '';
    return isText ? [] : [`${path}[${index}] must be a string that is not empty.`];
  });

function nameType(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (isObject(value)) return 'an object';
  return Number.isNaN(value) ? 'not a number' : `a ${typeof value}`;
}

/** Returns true, or a description of the problem. */
type Requirement = (config: Config) => true | string;

const REQUIREMENTS: readonly Requirement[] = [
  ({ oauth }) =>
    oauth.mode === 'broker' ||
    oauth.mode === 'proxy' ||
    'config.oauth.mode must be broker or proxy.',
  ({ oauth }) =>
    oauth.consent.kind === 'page' ||
    oauth.consent.kind === 'off' ||
    'config.oauth.consent.kind must be page or off.',
  ({ http }) =>
    ['all', 'none', 'hops', 'networks'].includes(http.trustProxy.kind) ||
    'config.http.trustProxy.kind must be all, none, hops or networks.',
  ({ auth }) =>
    !auth.required ||
    auth.provider.issuer !== '' ||
    'config.auth.provider.issuer must not be empty.',
  ({ auth, oauth }) =>
    !auth.required ||
    auth.provider.issuer === oauth.provider?.issuer ||
    'config.auth.provider and config.oauth.provider must be the same provider.',
  ({ oauth }) =>
    oauth.mode === 'proxy' ||
    oauth.providerClient.id !== '' ||
    'config.oauth.providerClient.id must not be empty.',
  ({ audit: { destination, required } }) =>
    (destination === undefined ? !required : ['stdout', 'file'].includes(destination.kind)) ||
    'config.audit.destination.kind must be stdout or file.',
  ({ auth, admin }) =>
    auth.required ||
    admin.groups.length === 0 ||
    'config.admin.groups must be empty where config.auth.required is false.',
  ({ oauth }) =>
    !needsStateSecret(oauth.mode, oauth.consent.kind) ||
    hasSecret(oauth.stateSecret) ||
    `config.oauth.stateSecret is missing or has fewer than ${MIN_SECRET_BYTES} bytes: broker mode and the consent page need it.`,
];

const hasSecret = (secret: StateSecret | undefined): boolean =>
  secret?.kind === 'given'
    ? secret.secrets.length > 0 && secret.secrets.every(isLongEnough)
    : Boolean(secret?.dataDir);
