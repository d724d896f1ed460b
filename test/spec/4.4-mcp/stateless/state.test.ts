// MCP 2026-07-28 "Multi Round-Trip Requests": requestState comes from the client, so nothing of it
// is believed that was not sealed here, for this call of this user, within the hour.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createLocalCatalog, defineTool, elicit } from '../../../../src/index.ts';
import { askingCatalog } from '../../../support/catalogs/stateless-asking-catalog.ts';
import {
  ASKABLE,
  accepted,
  answeringCall,
  askingCall,
  type Retry,
  stateless,
} from '../../../support/clients/stateless.ts';
import { manualClock } from '../../../support/gateway/clock.ts';
import { startGateway, type TestResponse } from '../../../support/gateway/gateway.ts';
import { useGateway } from '../../../support/gateway/use-gateway.ts';
import { ACCEPT_PROVIDER_TOKENS } from '../../../support/oauth/issuer.ts';

const HOUR_MS = 3_600_000;
const ADA = accepted({ name: 'Ada' });
const SECRET = 'a-secret-of-32-characters-at-least';
const BROKER = {
  OAUTH_MODE: 'broker',
  ...ACCEPT_PROVIDER_TOKENS,
  OAUTH_CLIENT_ID: 'gateway',
  OAUTH_CLIENT_SECRET: 'secret',
};

const clock = manualClock();
const gateway = useGateway({ deps: { catalog: askingCatalog, clock } });

const call = (name: string, retry: Retry = {}, sub = 'ada', at = gateway) =>
  at.issuer.sign({ sub }).then((token) => askingCall(at, name, retry, { token }));

/** The state of `rounds` after its first question: it holds the answer. */
async function stateOf(name = 'rounds', retry: Retry = {}, at = gateway): Promise<string> {
  const token = await at.issuer.sign({ sub: 'ada' });
  const answers = { inputResponses: { who: ADA }, ...retry };
  const { json } = await answeringCall(at, name, answers, { token });
  expect(json.result.resultType).toBe('input_required');
  return json.result.requestState;
}

function expectRefused({ status, json }: TestResponse): void {
  expect(status).toBe(200);
  expect(json).toMatchObject({ jsonrpc: '2.0', error: { code: -32602 }, id: 1 });
  expect(json.error.data.details).toContain('requestState');
}

const ANSWERED = { inputResponses: { sure: ADA } };

describe('requestState', () => {
  test('§15 what was answered before it is known by it alone', async () => {
    const { json } = await call('rounds', { ...ANSWERED, requestState: await stateOf() });
    expect(JSON.parse(json.result.content[0].text)).toEqual({ who: ADA, sure: ADA });
    const lost = await call('rounds', ANSWERED);
    expect(Object.keys(lost.json.result.inputRequests)).toEqual(['who']);
  });

  const changed = (state: string, at: number) =>
    `${state.slice(0, at)}${state[at] === 'A' ? 'B' : 'A'}${state.slice(at + 1)}`;

  test.each<{ what: string; tamper: (state: string) => unknown }>([
    { what: 'empty', tamper: () => '' },
    { what: 'made up', tamper: () => 'nonsense' },
    { what: 'base64 of JSON', tamper: () => Buffer.from('{"answers":{}}').toString('base64url') },
    { what: 'shortened', tamper: (state) => state.slice(0, -8) },
    { what: 'lengthened', tamper: (state) => `${state}AAAA` },
    { what: 'changed at its start', tamper: (state) => changed(state, 0) },
    { what: 'changed in the middle', tamper: (state) => changed(state, state.length >> 1) },
    { what: 'changed near its end', tamper: (state) => changed(state, state.length - 4) },
    { what: 'doubled', tamper: (state) => state + state },
    { what: 'a number', tamper: () => 5 },
    { what: 'null', tamper: () => null },
    { what: 'an array', tamper: (state) => [state] },
    { what: 'an object', tamper: () => ({}) },
  ])('§7.1 $what: -32602', async ({ tamper }) => {
    const requestState = tamper(await stateOf());
    expectRefused(await call('rounds', { ...ANSWERED, requestState }));
  });

  test('§5.7 another user’s is refused, and the owner’s is as good as before', async () => {
    const requestState = await stateOf();
    expectRefused(await call('rounds', { ...ANSWERED, requestState }, 'eve'));
    const { json } = await call('rounds', { ...ANSWERED, requestState });
    expect(json.result.resultType).toBe('complete');
  });

  test.each<{ what: string; first: string; second: string; before: Retry; after: Retry }>([
    { what: 'another tool', first: 'rounds', second: 'several', before: {}, after: {} },
    {
      what: 'other arguments',
      first: 'rounds',
      second: 'rounds',
      before: { arguments: { topic: 'a' } },
      after: { arguments: { topic: 'b' } },
    },
    {
      what: 'no arguments',
      first: 'rounds',
      second: 'rounds',
      before: { arguments: { topic: 'a' } },
      after: {},
    },
    {
      what: 'more arguments',
      first: 'rounds',
      second: 'rounds',
      before: { arguments: { topic: 'a' } },
      after: { arguments: { topic: 'a', more: 1 } },
    },
  ])('§7.1 with $what: -32602', async ({ first, second, before, after }) => {
    const requestState = await stateOf(first, before);
    expectRefused(await call(second, { ...after, ...ANSWERED, requestState }));
    const { json } = await call(first, { ...before, ...ANSWERED, requestState });
    expect(json.result.resultType).toBe('complete');
  });

  test('§7.1 with another method, though the name is the same: -32602', async () => {
    const { json } = await stateless(gateway, 'prompts/get', { name: 'asks' }, { meta: ASKABLE });
    const { requestState } = json.result;
    const params = { uri: 'test://asks', requestState };
    expectRefused(await stateless(gateway, 'resources/read', params, { meta: ASKABLE }));
    expectRefused(await call('asks', { requestState }, 'user-1'));
  });

  test('§15 it holds for an hour, and each round’s for an hour of its own', async () => {
    const first = await stateOf();
    clock.advance(HOUR_MS - 1);
    const still = await call('rounds', { requestState: first });
    const second = still.json.result.requestState;
    clock.advance(1);
    expectRefused(await call('rounds', { ...ANSWERED, requestState: first }));
    clock.advance(HOUR_MS - 2);
    const last = await call('rounds', { ...ANSWERED, requestState: second });
    expect(last.json.result.resultType).toBe('complete');
    clock.advance(1);
    expectRefused(await call('rounds', { ...ANSWERED, requestState: second }));
  });

  test('§15 without authentication it is bound to its call', async () => {
    const open = await startGateway({
      env: { AUTH_REQUIRED: 'false' },
      deps: { catalog: askingCatalog },
    });
    try {
      const requestState = await stateOf('rounds', {}, open);
      expectRefused(await call('several', { ...ANSWERED, requestState }, 'ada', open));
      const { json } = await call('rounds', { ...ANSWERED, requestState }, 'ada', open);
      expect(json.result.resultType).toBe('complete');
    } finally {
      await open.close();
    }
  });
});

describe('a restart between the rounds', () => {
  type Env = Readonly<Record<string, string>>;

  test.each<{ what: string; env: Env; later?: Env }>([
    { what: 'the same folder', env: {} },
    { what: 'the same secret', env: { OAUTH_STATE_SECRET: SECRET } },
    {
      what: 'a new secret before the old one',
      env: { OAUTH_STATE_SECRET: SECRET },
      later: { OAUTH_STATE_SECRET: `${SECRET.toUpperCase()},${SECRET}` },
    },
    { what: 'broker mode', env: { ...BROKER, OAUTH_STATE_SECRET: SECRET } },
    { what: 'broker mode and the same folder', env: BROKER },
  ])('§15 $what: the second round goes on where the first ended', async ({ env, later = env }) => {
    const folder = await mkdtemp(join(tmpdir(), 'postern-state-'));
    const open = (settings: Env) =>
      startGateway({ env: { DATA_DIR: folder, ...settings }, deps: { catalog: askingCatalog } });
    try {
      const before = await open(env);
      const requestState = await stateOf('rounds', {}, before).finally(before.close);
      const after = await open(later);
      const { json } = await call('rounds', { ...ANSWERED, requestState }, 'ada', after).finally(
        after.close,
      );
      expect(JSON.parse(json.result.content[0].text)).toEqual({ who: ADA, sure: ADA });
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  test('§7.1 another folder: -32602, not an answer', async () => {
    const requestState = await stateOf();
    const other = await startGateway({ deps: { catalog: askingCatalog } });
    try {
      expectRefused(await call('rounds', { ...ANSWERED, requestState }, 'ada', other));
    } finally {
      await other.close();
    }
  });
});

const NAME_FORM = {
  type: 'object',
  properties: { name: { type: 'string' } },
  required: ['name'],
} as const;

const sorting = createLocalCatalog({
  tools: [
    defineTool({
      name: 'sorts',
      description: 'Changes its arguments, and asks.',
      inputSchema: {
        type: 'object',
        properties: { tags: { type: 'array', items: { type: 'string' } } },
        required: ['tags'],
      },
      async run(args, { ask }) {
        const tags: string[] = args.tags;
        tags.sort();
        await ask({ who: elicit('Who?', NAME_FORM) });
        return { content: [{ type: 'text', text: tags.map((tag) => tag[0]).join() }] };
      },
    }),
  ],
});
const sortingGateway = useGateway({ deps: { catalog: sorting } });

test.each([1, 3000])(
  '§15 state: a tool may change its arguments before it asks (%d characters each)',
  async (length) => {
    const token = await sortingGateway.issuer.sign({ sub: 'ada' });
    const ask = (retry: object) =>
      stateless(
        sortingGateway,
        'tools/call',
        { name: 'sorts', arguments: { tags: ['b'.repeat(length), 'a'.repeat(length)] }, ...retry },
        { token, meta: ASKABLE },
      );
    const { json: asked } = await ask({});
    const { requestState } = asked.result;
    const { json } = await ask({ requestState, inputResponses: { who: ADA } });
    expect(json.result.content).toEqual([{ type: 'text', text: 'a,b' }]);
  },
);
