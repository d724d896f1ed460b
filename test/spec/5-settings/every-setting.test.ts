// A setting that nothing reads, or that no code uses, would seem to work, and one that no group lists would be neither checked nor documented.
import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { readConfig, SETTINGS } from '../../../src/config/config.ts';
import { createReader, type Env, type Read, type Setting } from '../../../src/config/setting.ts';

const BROKER = {
  OAUTH_MODE: 'broker',
  OAUTH_CLIENT_ID: 'client',
  OAUTH_STATE_SECRET: 's'.repeat(48),
};

const PROVIDER = { OIDC_ISSUER: 'https://id.example' };

/** All kinds of gateways there are. */
const GATEWAYS: readonly Env[] = [
  PROVIDER,
  { ...BROKER, OIDC_PROVIDER: 'github' },
  {
    ...BROKER,
    ...PROVIDER,
    REDIS_URL: 'redis://localhost',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://localhost:4318',
  },
];

/** The settings that are read into the configuration of one of them. */
function listRead(): ReadonlySet<Setting<unknown>> {
  const found = new Set<Setting<unknown>>();
  for (const env of GATEWAYS) {
    const reader = createReader(env);
    const read: Read = (setting) => {
      found.add(setting);
      // What a default depends on is read for it.
      if ('compute' in setting.default) setting.default.compute(read);
      return reader(setting);
    };
    readConfig(read, env);
  }
  return found;
}

const nameAll = (settings: Iterable<Setting<unknown>>): ReadonlySet<string> =>
  new Set([...settings].map(({ variable }) => variable));

const without = (names: ReadonlySet<string>, others: ReadonlySet<string>): readonly string[] =>
  [...names].filter((name) => !others.has(name));

test('§5 settings: each row of the table is read, and each that is read is a row', () => {
  const [read, listed] = [nameAll(listRead()), nameAll(SETTINGS)];
  expect(without(listed, read)).toEqual([]);
  expect(without(read, listed)).toEqual([]);
});

/** What is read into `Config`, by its last name. */
function listMembers(value: object): readonly string[] {
  return Object.entries(value).flatMap(([name, member]) =>
    isPlainObject(member) ? listMembers(member) : [name],
  );
}

const isPlainObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;

/** Not a word of another standard, such as the name of a claim. */
const isOurs = (name: string): boolean => /^[a-z][A-Za-z]*$/.test(name);

test('§5 settings: each member of the configuration is named by code outside of its group', () => {
  const src = new URL('../../../src/', import.meta.url);
  const words = new Set(
    readdirSync(src, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !name.startsWith('config/groups/'))
      .flatMap((name) => readFileSync(new URL(name, src), 'utf8').match(/\w+/g) ?? []),
  );
  const members = new Set(
    GATEWAYS.flatMap((env) => listMembers(readConfig(createReader(env), env))),
  );
  expect(members.size).toBeGreaterThan(100);
  expect([...members].filter((name) => isOurs(name) && !words.has(name))).toEqual([]);
});
