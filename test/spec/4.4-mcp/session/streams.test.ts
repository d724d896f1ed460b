// Answers of tools: plain JSON, or a stream of events where there is something to say before.
import { beforeAll, describe, expect, test } from 'vitest';
import { createLocalCatalog, defineTool } from '../../../../src/index.ts';
import { openEvents, type ServerEvent } from '../../../support/clients/event-stream.ts';
import {
  BOTH_TYPES,
  lastOf,
  openClient,
  type SessionClient,
} from '../../../support/clients/session-client.ts';
import { useGateway } from '../../../support/gateway/use-gateway.ts';

const catalog = createLocalCatalog({
  logging: true,
  tools: [
    defineTool({
      name: 'tells',
      description: 'Says what it is told to, then answers.',
      inputSchema: {
        type: 'object',
        properties: {
          progress: { type: 'boolean' },
          log: { enum: ['debug', 'info', 'error'] },
        },
      },
      run({ progress, log }, context) {
        if (progress) context.progress(1, 2, 'half way');
        if (log) context.log(log, { told: log }, 'teller');
        return { content: [{ type: 'text', text: 'told' }] };
      },
    }),
  ],
});

const gateway = useGateway({ deps: { catalog } });
let client: SessionClient;
beforeAll(async () => {
  client = await openClient(gateway);
});

const TOLD = { jsonrpc: '2.0', id: 1, result: { content: [{ type: 'text', text: 'told' }] } };
const PROGRESS = {
  jsonrpc: '2.0',
  method: 'notifications/progress',
  params: { progressToken: 'p', progress: 1, total: 2, message: 'half way' },
};
const LOGGED = {
  jsonrpc: '2.0',
  method: 'notifications/message',
  params: { level: 'info', logger: 'teller', data: { told: 'info' } },
};

describe('which calls are answered with a stream', () => {
  test.each([
    { says: {}, messages: [] },
    { says: { progress: true }, messages: [] },
    { says: { log: 'debug' }, messages: [] },
    { says: { progress: true }, token: 'p', messages: [PROGRESS] },
    { says: { log: 'info' }, messages: [LOGGED] },
    { says: { log: 'debug', progress: true }, token: 'p', messages: [PROGRESS] },
    { says: { log: 'info', progress: true }, token: 'p', messages: [PROGRESS, LOGGED] },
  ])(
    '§4.4 a tool that says $says (token $token) gets $messages.length events before its result',
    async (row) => {
      const { says, token, messages } = row;
      const answer = await client.call('tells', says, { ...(token && { progressToken: token }) });
      expect(answer.status).toBe(200);
      expect(answer.isStream).toBe(messages.length > 0);
      if (answer.isStream) expect(await answer.rest()).toEqual([...messages, TOLD]);
      else {
        expect(answer.headers['content-type']).toMatch(/^application\/json/);
        expect(JSON.parse(await answer.text())).toEqual(TOLD);
      }
    },
  );

  test.each([
    { accept: BOTH_TYPES, streams: true },
    { accept: 'text/event-stream', streams: true },
    { accept: 'application/json;q=0.9,TEXT/Event-Stream; q=0.1', streams: true },
    { accept: 'application/json', streams: false },
    { accept: '*/*', streams: false },
    { accept: 'text/*', streams: false },
    { accept: 'text/event-streams', streams: false },
    { accept: 'application/json, text/event-stream;q=0', streams: false },
    { accept: '', streams: false },
    { accept: undefined, streams: false },
  ])('§4.4 with Accept $accept a tool that speaks streams: $streams', async (row) => {
    const answer = await openEvents({
      port: await gateway.listen(),
      headers: {
        authorization: `Bearer ${client.token}`,
        'mcp-session-id': client.session,
        ...(row.accept !== undefined && { accept: row.accept }),
      },
      body: {
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: {
          name: 'tells',
          arguments: { log: 'info', progress: true },
          _meta: { progressToken: 1 },
        },
      },
    });
    expect(answer.isStream).toBe(row.streams);
    if (row.streams) expect(await answer.rest()).toHaveLength(3);
    else expect(JSON.parse(await answer.text())).toEqual(TOLD);
  });

  test('§4.4 every event is a message, the first has but an id, and the answer is the last', async () => {
    const answer = await client.call('tells', { log: 'info' });
    const events: ServerEvent[] = [];
    for await (const event of answer) events.push(event);
    expect(events.map(({ event }) => event)).toEqual(['message', 'message', 'message']);
    expect(events[0]?.data).toBe('');
    expect(JSON.parse(events[2]?.data ?? '')).toEqual(TOLD);
  });

  test.each(['tools/list', 'ping'])(
    '§4.4 %s is plain JSON, whatever is accepted',
    async (method) => {
      const answer = await client.send(
        { jsonrpc: '2.0', id: 1, method },
        { accept: 'text/event-stream' },
      );
      expect(answer.headers['content-type']).toMatch(/^application\/json/);
      expect(JSON.parse(await answer.text())).toHaveProperty('result');
    },
  );
});

describe('streamed answers', () => {
  test('§4.12 a streamed answer has the headers of every answer, and those of a stream', async () => {
    const answer = await client.call(
      'tells',
      { log: 'info' },
      { headers: { origin: 'http://localhost:3000' } },
    );
    await answer.rest();
    expect(answer.headers).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': expect.stringMatching(/\bno-cache\b/),
      'x-accel-buffering': 'no',
      'x-session-expires-at': expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      'x-ratelimit-limit': '10000',
      'x-ratelimit-remaining': expect.stringMatching(/^\d+$/),
      'x-ratelimit-reset': expect.stringMatching(/^\d+$/),
      'access-control-allow-origin': 'http://localhost:3000',
      'access-control-expose-headers': expect.stringContaining('X-Session-Expires-At'),
      vary: 'Origin',
    });
    const plain = await client.call('tells', {}, { headers: { origin: 'http://localhost:3000' } });
    await plain.text();
    const ofTheBody = ['content-type', 'content-length', 'cache-control'];
    for (const name of Object.keys(plain.headers).filter((one) => !ofTheBody.includes(one))) {
      expect(answer.headers, name).toHaveProperty(name);
    }
    expect(answer.headers).not.toHaveProperty('content-length');
  });

  test('§3.1 a streamed answer slides the session', async () => {
    const before = Date.now();
    const answer = await client.call('tells', { log: 'info' });
    await answer.rest();
    const expiresAt = Date.parse(String(answer.headers['x-session-expires-at']));
    expect(expiresAt - before).toBeGreaterThanOrEqual(3_600_000);
  });

  test('§7.1 what is refused before anything was said is plain JSON', async () => {
    const answer = await client.call('no-such-tool', {}, { progressToken: 1 });
    expect(answer.isStream).toBe(false);
    expect(await lastOf(answer)).toMatchObject({ error: { code: -32602 } });
  });
});
