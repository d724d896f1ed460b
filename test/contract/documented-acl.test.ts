// What docs/operations/store.md says of the store, held against what the code keeps there, and against a real Redis.
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as keys from '../../src/store/keys.ts';
import { type RedisServer, startRedis } from '../support/stores/redis.ts';

const page = readFileSync('docs/operations/store.md', 'utf8');

/** By name of the parameter, where not any word will do. */
const ARGUMENTS: Readonly<Record<string, string>> = {
  sessionKeyPrefix: 'mcp:session:',
  clientId: 'svc-x1',
  kind: 'login',
  limitKey: 'ratelimit:mcp:global',
};

/** Of buildTaskBudgetKey and buildLimitKey. */
const COUNTED: Readonly<Record<string, string>> = {
  buildTaskBudgetKey: 'running',
  buildLimitKey: 'global',
};

/** Every key and channel of the code, by the name of what builds it. */
const built = Object.entries(keys).flatMap(([name, value]): [string, string][] => {
  if (typeof value === 'string') return [[name, value]];
  if (typeof value !== 'function' || !name.startsWith('build')) return [];
  const build = value as (...args: readonly string[]) => string;
  const parameters = /^\((.*?)\)\s*=>/s.exec(build.toString())?.[1]?.split(',') ?? [];
  const args = parameters
    .map((one) => one.trim())
    .map((one) => (one === 'counted' ? COUNTED[name] : ARGUMENTS[one]) ?? 'x1');
  return [[name, build(...args)]];
});
const channels = built.filter(([name]) => name.endsWith('ChannelName'));
const stored = built.filter(([name]) => !name.endsWith('ChannelName'));

test('there are keys and channels to look at', () => {
  expect(stored.length).toBeGreaterThan(40);
  expect(channels.length).toBeGreaterThan(5);
});

describe('the Redis user of the documentation', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
    const line = /^ACL (SETUSER postern on .*)$/m.exec(page)?.[1]?.split(' ') ?? [];
    const more = /`ACL (SETUSER postern &[^`]*)`/.exec(page)?.[1]?.split(' ') ?? [];
    const client = redis.client();
    await client.call('ACL', ...line);
    await client.call('ACL', ...more);
  });
  afterAll(() => redis.close());

  const dryRun = (...command: readonly string[]) =>
    redis.client().call('ACL', 'DRYRUN', 'postern', ...command);

  test.each(stored)('may read and write %s (%s)', async (_name, key) => {
    expect(await dryRun('SET', key, 'value')).toBe('OK');
    expect(await dryRun('GET', key)).toBe('OK');
  });

  test.each(channels)('may use the channel %s (%s)', async (_name, channel) => {
    expect(await dryRun('PUBLISH', channel, 'message')).toBe('OK');
    expect(await dryRun('SUBSCRIBE', `${channel}:replica`)).toBe('OK');
  });

  test('may be told of changes, as STORE_READS=tracked needs it', async () => {
    expect(await dryRun('CLIENT', 'ID')).toBe('OK');
    expect(await dryRun('CLIENT', 'TRACKING', 'ON', 'REDIRECT', '1')).toBe('OK');
    expect(await dryRun('SUBSCRIBE', '__redis__:invalidate')).toBe('OK');
  });

  test('may touch nothing of other services', async () => {
    expect(await dryRun('GET', 'somebody-else')).not.toBe('OK');
    expect(await dryRun('PUBLISH', 'somebody-else', 'message')).not.toBe('OK');
    expect(await dryRun('FLUSHALL')).not.toBe('OK');
  });
});

describe('the table of what is stored', () => {
  const forms = [...page.matchAll(/^\| (`.*?) \|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, form = '']) => toPattern(form)),
  );

  test.each(stored)('has %s (%s)', (_name, key) => {
    expect(forms.some((form) => form.test(key))).toBe(true);
  });
});

/** `<…>` stands for a word, `…` for all that follows. */
function toPattern(form: string): RegExp {
  const pattern = form
    .replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
    .replace(/<[^>]+>/g, '[^:]+')
    .replaceAll('…', '.+');
  return new RegExp(`^${pattern}$`);
}
