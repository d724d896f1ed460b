// A setting that nothing reads would seem to work, and one that no group lists would be neither checked nor documented.
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
