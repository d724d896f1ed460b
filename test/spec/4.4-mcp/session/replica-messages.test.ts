// §16: messages between replicas are sealed; what does not open is dropped and counted.
import type { Redis } from 'ioredis';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ABLE, createAskingCatalog } from '../../../support/catalogs/session-asking-catalog.ts';
import { lastOf, openClient, type SessionClient } from '../../../support/clients/session-client.ts';
import { manualClock } from '../../../support/gateway/clock.ts';
import type { TestGateway } from '../../../support/gateway/gateway.ts';
import { flushLoopback } from '../../../support/gateway/manual-connection.ts';
import { seriesOf } from '../../../support/gateway/metrics.ts';
import { startTwoReplicas } from '../../../support/gateway/two-replicas.ts';
import { closeAfterTest, useShared } from '../../../support/lifetimes.ts';

const { catalog } = createAskingCatalog();

const BUS = 'mcp:session:bus';
const ADA = { action: 'accept', content: { name: 'Ada' } };
const FORGED = { action: 'accept', content: { name: 'Mallory' } };
const answered = (form: object) => ({
  result: { content: [{ type: 'text', text: JSON.stringify({ form }) }] },
});

const dropped = (gateway: TestGateway, reason: string) =>
  seriesOf(gateway, 'mcp_replica_messages_dropped_total', { reason });

const warnings = ({ log }: TestGateway) =>
  log.filter(({ level, msg }) => level === 'warn' && msg.includes('channel of the replicas'));

/** A question of a session, asked at the first replica. */
async function asking(client: SessionClient) {
  const stream = await client.call('asks', { kinds: ['form'] });
  const { id } = await stream.next();
  return { id, last: () => lastOf(stream) };
}

/** All that is published, as [channel, text]. */
async function record(redis: Redis): Promise<[string, string][]> {
  const heard: [string, string][] = [];
  await redis.psubscribe('*');
  redis.on('pmessage', (_pattern, channel, text) => heard.push([channel, text]));
  return heard;
}

describe('messages between replicas', () => {
  const pair = useShared(() => startTwoReplicas({ deps: { catalog } }));
  let redis: Redis;
  let heard: [string, string][];
  let client: SessionClient;
  let elsewhere: SessionClient;

  beforeAll(async () => {
    redis = pair.redis.client();
    heard = await record(pair.redis.client());
    client = await openClient(pair.one, { capabilities: ABLE });
    elsewhere = await client.at(pair.other);
  });
  beforeEach(() => {
    heard.length = 0;
  });

  /** Who waits for the answer, as the store says. */
  const waiting = async (id: unknown) =>
    String(await redis.get(`mcp:session:${client.session}:question:${id}`));

  test('§16 what is said unsealed answers nothing and is counted', async () => {
    const { id, last } = await asking(client);
    const forged = { about: 'answer', sessionId: client.session, id, result: FORGED };
    const before = (await dropped(pair.one, 'unreadable')) ?? 0;
    await redis.publish(`${BUS}:${await waiting(id)}`, JSON.stringify(forged));
    await redis.publish(BUS, JSON.stringify(forged));
    await expect.poll(() => dropped(pair.one, 'unreadable')).toBe(before + 2);
    expect(await elsewhere.answer(id, ADA)).toBe(202);
    expect(await last()).toMatchObject(answered(ADA));
  });

  test('§16 nobody reads on the channel what users answer, nor of which session', async () => {
    const { id, last } = await asking(client);
    await elsewhere.answer(id, ADA);
    expect(await last()).toMatchObject(answered(ADA));
    await expect.poll(() => heard).toHaveLength(1);
    const [[channel, text] = ['', '']] = heard;
    expect(channel).toMatch(/^mcp:session:bus:[0-9a-f-]{36}$/);
    expect(text).toMatch(/^1\.[\w=-]+$/);
    const bytes = Buffer.from(text.slice(2), 'base64url').toString('latin1');
    for (const secret of ['"name":"Ada"', client.session, String(id), 'answer']) {
      expect(text).not.toContain(secret);
      expect(bytes).not.toContain(secret);
    }
  });

  test('§16 a recorded message opens on its own channel only, and only once', async () => {
    await elsewhere.cancel('of another call');
    await expect.poll(() => heard).toHaveLength(1);
    const [[channel, cancellation] = ['', '']] = heard;
    expect(channel).toBe(BUS);
    const { id, last } = await asking(client);
    const repeated = (await dropped(pair.one, 'repeated')) ?? 0;
    const unreadable = (await dropped(pair.one, 'unreadable')) ?? 0;
    await redis.publish(BUS, cancellation);
    await redis.publish(`${BUS}:${await waiting(id)}`, cancellation);
    await expect.poll(() => dropped(pair.one, 'unreadable')).toBe(unreadable + 1);
    expect(await dropped(pair.one, 'repeated')).toBe(repeated + 1);
    await elsewhere.answer(id, ADA);
    expect(await last()).toMatchObject(answered(ADA));
  });

  test.each([
    ['a line break', (text: string) => `${text.slice(0, 5)}\n${text.slice(5)}`],
    ['a space before it', (text: string) => text.replace('.', '. ')],
    ['padding', (text: string) => `${text.slice(0, 5)}=${text.slice(5)}`],
    ['the other alphabet', (text: string) => text.replaceAll('-', '+').replaceAll('_', '/')],
  ])('§16 a recorded message in another spelling (%s) is dropped', async (_what, spell) => {
    // Until one whose nonce has a character that both alphabets spell differently.
    for (let id = 0; !/^1\..{0,15}[-_]/.test(heard.at(-1)?.[1] ?? ''); id += 1) {
      const count = heard.length;
      await elsewhere.cancel(`spelled ${id}`);
      await expect.poll(() => heard.length).toBe(count + 1);
    }
    const before = (await dropped(pair.one, 'unreadable')) ?? 0;
    await redis.publish(BUS, spell(heard.at(-1)?.[1] ?? ''));
    await expect.poll(() => dropped(pair.one, 'unreadable')).toBe(before + 1);
  });

  test('§16 a cancellation that is published again does not end a later call of the same id', async () => {
    const first = await asking(client);
    await elsewhere.cancel(1);
    expect((await first.last()).error.data.reason).toBe('request_cancelled');
    const [[, cancellation] = ['', '']] = heard;
    const second = await asking(client);
    const before = (await dropped(pair.one, 'repeated')) ?? 0;
    await redis.publish(BUS, cancellation);
    await expect.poll(() => dropped(pair.one, 'repeated')).toBe(before + 1);
    await client.answer(second.id, ADA);
    expect(await second.last()).toMatchObject(answered(ADA));
  });

  test.each([
    ['2.of-some-later-version', 'other_version'],
    ['1.', 'unreadable'],
    ['1.AAAA', 'unreadable'],
    ['', 'unreadable'],
    ['hello', 'unreadable'],
    [`1.${'A'.repeat(100_000)}`, 'unreadable'],
  ])('§16 %s is dropped as %s', async (text, reason) => {
    const before = (await dropped(pair.other, reason)) ?? 0;
    await redis.publish(BUS, text);
    await expect.poll(() => dropped(pair.other, reason)).toBe(before + 1);
  });

  test('§16 one changed character, and it is dropped', async () => {
    await elsewhere.cancel('x');
    await expect.poll(() => heard).toHaveLength(1);
    const text = heard[0]?.[1] ?? '';
    const before = (await dropped(pair.one, 'unreadable')) ?? 0;
    for (const at of [3, 20, text.length - 2]) {
      const other = text[at] === 'A' ? 'B' : 'A';
      await redis.publish(BUS, text.slice(0, at) + other + text.slice(at + 1));
    }
    await expect.poll(() => dropped(pair.one, 'unreadable')).toBe(before + 3);
  });
});

describe('what is logged of messages that were dropped', () => {
  const SECRETS = [
    'a-secret-of-the-first-of-two-replicas',
    'a-secret-of-the-other-of-two-replicas',
  ];
  const clock = manualClock();
  const pair = useShared(() =>
    startTwoReplicas(
      { env: { OAUTH_STATE_SECRET: SECRETS[0] ?? '' }, deps: { catalog, clock } },
      { env: { OAUTH_STATE_SECRET: SECRETS[1] ?? '' } },
    ),
  );
  let client: SessionClient;
  beforeAll(async () => {
    client = await openClient(pair.one, { capabilities: ABLE });
  });

  test('§16 of another OAUTH_STATE_SECRET, once a minute, with what to do', async () => {
    const { id, last } = await asking(client);
    const elsewhere = await client.at(pair.other);
    await elsewhere.answer(id, FORGED);
    for (const other of ['a', 'b', 'c']) await elsewhere.cancel(other);
    await expect.poll(() => dropped(pair.one, 'unreadable')).toBe(4);
    expect(warnings(pair.one)).toHaveLength(1);
    expect(warnings(pair.one)[0]).toMatchObject({
      msg: expect.stringMatching(/OAUTH_STATE_SECRET.*MCP_SESSION_KEY_PREFIX/),
      reason: 'unreadable',
      dropped: 1,
    });
    // Second by second: the stream of the call is read meanwhile.
    for (let second = 0; second < 60; second += 1) {
      clock.advance(1000);
      await flushLoopback();
    }
    await elsewhere.cancel('d');
    await expect.poll(() => warnings(pair.one)).toHaveLength(2);
    expect(warnings(pair.one)[1]).toMatchObject({ dropped: 4 });
    for (const secret of SECRETS) expect(JSON.stringify(pair.one.log)).not.toContain(secret);
    await client.answer(id, ADA);
    expect(await last()).toMatchObject(answered(ADA));
  });
});

describe('messages of other versions', () => {
  test.each([61_000, -61_000])('§16 %i ms apart: dropped as stale', async (ms) => {
    const start = Date.now();
    const pair = closeAfterTest(
      await startTwoReplicas(
        { deps: { catalog, clock: manualClock(start) } },
        { deps: { clock: manualClock(start + ms) } },
      ),
    );
    const client = await openClient(pair.one, {
      capabilities: ABLE,
      token: await pair.one.issuer.sign({ exp: Math.floor(start / 1000) + 3600, nbf: undefined }),
    });
    const { id, last } = await asking(client);
    const elsewhere = await client.at(pair.other);
    expect(await elsewhere.answer(id, FORGED)).toBe(202);
    const { one } = pair;
    await expect.poll(() => dropped(one, 'stale')).toBe(1);
    expect(warnings(one)[0]?.msg).toContain('clocks');
    await client.answer(id, ADA);
    expect(await last()).toMatchObject(answered(ADA));
  });
});
