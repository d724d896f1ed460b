// Log messages and progress of tools, as far as the client wants them.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createLocalCatalog, defineTool } from '../../../../src/index.ts';
import {
  clientOf,
  lastOf,
  openClient,
  type SessionClient,
} from '../../../support/clients/session-client.ts';
import { startGateway } from '../../../support/gateway/gateway.ts';
import { startTwoReplicas } from '../../../support/gateway/two-replicas.ts';
import { useGateway } from '../../../support/gateway/use-gateway.ts';

const LEVELS = [
  'debug',
  'info',
  'notice',
  'warning',
  'error',
  'critical',
  'alert',
  'emergency',
] as const;

const catalog = createLocalCatalog({
  logging: true,
  tools: [
    defineTool({
      name: 'logs-all',
      description: 'Logs once at every level.',
      inputSchema: { type: 'object' },
      run(_args, { log }) {
        for (const level of LEVELS) log(level, `at ${level}`);
        return { content: [] };
      },
    }),
    defineTool({
      name: 'logs-data',
      description: 'Logs values of every kind.',
      inputSchema: { type: 'object' },
      run(_args, { log }) {
        log('error', { nested: [1, null, 'ü\n\u2028'] }, 'a.logger');
        log('error', null);
        log('error', 0);
        return { content: [] };
      },
    }),
    defineTool({
      name: 'progresses',
      description: 'Makes progress.',
      inputSchema: { type: 'object' },
      run(_args, { progress }) {
        progress(0);
        progress(0.5, 2);
        progress(2, 2, 'done');
        return { content: [] };
      },
    }),
  ],
});

const gateway = useGateway({ deps: { catalog } });

const setLevel = (client: SessionClient, level: unknown) =>
  client.ask('logging/setLevel', { level });

/** The levels of the messages that a tool's call brings. */
async function heard(client: SessionClient): Promise<readonly string[]> {
  const answer = await client.call('logs-all');
  if (!answer.isStream) {
    expect(await lastOf(answer)).toHaveProperty('result');
    return [];
  }
  const messages = await answer.rest();
  expect(messages.at(-1)).toHaveProperty('result');
  return messages.slice(0, -1).map(({ method, params }) => {
    expect(method).toBe('notifications/message');
    expect(params).toEqual({ level: params.level, data: `at ${params.level}` });
    return params.level;
  });
}

describe('logging/setLevel', () => {
  test('§4.4 before any setLevel a session hears info and above', async () => {
    expect(await heard(await openClient(gateway))).toEqual(LEVELS.slice(1));
  });

  test.each(LEVELS)(
    '§4.4 setLevel %s is answered with {} and heard from there on',
    async (level) => {
      const client = await openClient(gateway);
      expect(await setLevel(client, level)).toEqual({ jsonrpc: '2.0', result: {}, id: 1 });
      expect(await heard(client)).toEqual(LEVELS.slice(LEVELS.indexOf(level)));
    },
  );

  test.each(['warn', 'INFO', '', 'toString', 3, null, ['info'], undefined])(
    '§4.4 setLevel %j is -32602 and changes nothing',
    async (level) => {
      const client = await openClient(gateway);
      await setLevel(client, 'alert');
      const { error, id } = await setLevel(client, level);
      expect(error).toMatchObject({ code: -32602, message: 'Invalid params' });
      expect(error.data.details).toContain('level');
      expect(id).toBe(1);
      expect(await heard(client)).toEqual(['alert', 'emergency']);
    },
  );

  test('§4.4 a level is its session’s own, and may be lowered again', async () => {
    const [one, other] = await Promise.all([openClient(gateway), openClient(gateway)]);
    await setLevel(one, 'emergency');
    expect(await heard(one)).toEqual(['emergency']);
    expect(await heard(other)).toEqual(LEVELS.slice(1));
    await setLevel(one, 'debug');
    expect(await heard(one)).toEqual(LEVELS);
  });

  test('§4.4 data of every kind arrives as it is, the logger where it was named', async () => {
    const messages = await (await (await openClient(gateway)).call('logs-data')).rest();
    expect(messages.slice(0, -1).map(({ params }) => params)).toEqual([
      { level: 'error', logger: 'a.logger', data: { nested: [1, null, 'ü\n\u2028'] } },
      { level: 'error', data: null },
      { level: 'error', data: 0 },
    ]);
  });

  test('§3.1 a level outlives a restart', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'postern-level-'));
    const env = { DATA_DIR: folder };
    const before = await startGateway({ env, deps: { catalog } });
    const client = await openClient(before);
    await setLevel(client, 'critical');
    await before.gateway.close();
    const after = await startGateway({
      env: { ...env, OIDC_ISSUER: before.issuer.url },
      deps: { catalog },
    });
    try {
      expect(await heard(await client.at(after))).toEqual(LEVELS.slice(5));
      // A touch does not forget it.
      expect(await heard(await client.at(after))).toEqual(LEVELS.slice(5));
    } finally {
      await after.close();
      await before.issuer.close();
      await rm(folder, { recursive: true, force: true });
    }
  });

  test('§3.1 a level holds on every replica', async () => {
    const { one, other, close } = await startTwoReplicas({ deps: { catalog } });
    try {
      const client = await openClient(one);
      const elsewhere = await client.at(other);
      expect(await heard(elsewhere)).toEqual(LEVELS.slice(1));
      await setLevel(client, 'warning');
      expect(await heard(elsewhere)).toEqual(LEVELS.slice(3));
      await setLevel(elsewhere, 'emergency');
      expect(await heard(client)).toEqual(['emergency']);
    } finally {
      await close();
    }
  });

  test('§3.1 nobody sets the level of another’s session', async () => {
    const client = await openClient(gateway);
    const token = await gateway.issuer.sign({ sub: 'mallory' });
    const mallory = clientOf(await gateway.listen(), client.session, token);
    expect(await setLevel(mallory, 'emergency')).toMatchObject({
      error: { data: { reason: 'session_not_found' } },
    });
    expect(await heard(client)).toEqual(LEVELS.slice(1));
  });
});

describe('progress', () => {
  test.each(['token', '', 7, 0])(
    '§4.4 progress carries the token %j as it came',
    async (progressToken) => {
      const client = await openClient(gateway);
      const messages = await (await client.call('progresses', {}, { progressToken })).rest();
      expect(messages).toEqual([
        ...[
          { progressToken, progress: 0 },
          { progressToken, progress: 0.5, total: 2 },
          { progressToken, progress: 2, total: 2, message: 'done' },
        ].map((params) => ({ jsonrpc: '2.0', method: 'notifications/progress', params })),
        { jsonrpc: '2.0', result: { content: [] }, id: 1 },
      ]);
    },
  );

  test.each([
    { _meta: {} },
    { _meta: { progressToken: null } },
    { _meta: { progressToken: {} } },
    {},
  ])('§4.4 with %j there is no progress and no stream', async (meta) => {
    const client = await openClient(gateway);
    const { result } = await client.ask('tools/call', { name: 'progresses', ...meta });
    expect(result).toEqual({ content: [] });
  });
});
