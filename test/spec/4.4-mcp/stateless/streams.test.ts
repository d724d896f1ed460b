// MCP 2026-07-28 "Receiving Messages": progress and log come in a stream, for whoever asked.
import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import {
  createLocalCatalog,
  definePrompt,
  defineResource,
  defineTool,
} from '../../../../src/index.ts';
import {
  callTool,
  eventsIn,
  LOG_LEVEL,
  SERVER_INFO,
  type StatelessOptions,
  sendToolCall,
  stateless,
} from '../../../support/clients/stateless.ts';
import { useGateway } from '../../../support/gateway/use-gateway.ts';

const BOTH = 'application/json, text/event-stream';
let goOn = () => {};

const catalog = createLocalCatalog({
  logging: true,
  tools: [
    defineTool({
      name: 'talks',
      description: 'Tells its progress, and logs.',
      inputSchema: { type: 'object' },
      run(_args, { progress, log }) {
        progress(0, 2, 'begun');
        log('info', { at: 'the half' }, 'talker');
        progress(1, 2);
        return { content: [{ type: 'text', text: 'done' }] };
      },
    }),
    defineTool({
      name: 'fails',
      description: 'Tells its progress, then throws.',
      inputSchema: { type: 'object' },
      run(_args, { progress }) {
        progress(1);
        throw new Error('the disk is full');
      },
    }),
    defineTool({
      name: 'waits',
      description: 'Tells its progress, then waits to be told.',
      inputSchema: { type: 'object' },
      async run(_args, { progress }) {
        progress(1);
        await new Promise<void>((resolve) => {
          goOn = resolve;
        });
        return { content: [] };
      },
    }),
    defineTool({
      name: 'silent',
      description: 'Says nothing before its result.',
      inputSchema: { type: 'object' },
      run: () => ({ content: [] }),
    }),
  ],
  prompts: [
    definePrompt({
      name: 'talks',
      description: '',
      arguments: [],
      get(_args, { progress }) {
        progress(1);
        return { messages: [] };
      },
    }),
  ],
  resources: [
    defineResource({
      uri: 'test://talks',
      name: 'talks',
      description: '',
      mimeType: 'text/plain',
      read({ progress }) {
        progress(1);
        return { text: '' };
      },
    }),
  ],
});

const gateway = useGateway({ deps: { catalog } });

const asking = (meta: StatelessOptions['meta'], accept: string | undefined = BOTH) => ({
  ...(meta && { meta }),
  headers: { accept },
});

describe('a streamed answer', () => {
  test('§15 progress and log in order, the response last, then the end', async () => {
    const meta = { progressToken: 'mine', [LOG_LEVEL]: 'info' };
    const { status, headers, text } = await callTool(gateway, 'talks', {}, asking(meta));
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      'content-type': 'text/event-stream',
      'x-accel-buffering': 'no',
      'cache-control': expect.stringContaining('no-cache'),
    });
    expect(headers['mcp-session-id']).toBeUndefined();
    expect(eventsIn(text)).toEqual([
      {
        jsonrpc: '2.0',
        method: 'notifications/progress',
        params: { progressToken: 'mine', progress: 0, total: 2, message: 'begun' },
      },
      {
        jsonrpc: '2.0',
        method: 'notifications/message',
        params: { level: 'info', logger: 'talker', data: { at: 'the half' } },
      },
      {
        jsonrpc: '2.0',
        method: 'notifications/progress',
        params: { progressToken: 'mine', progress: 1, total: 2 },
      },
      {
        jsonrpc: '2.0',
        id: 1,
        result: {
          resultType: 'complete',
          content: [{ type: 'text', text: 'done' }],
          _meta: { [SERVER_INFO]: expect.objectContaining({ name: 'postern' }) },
        },
      },
    ]);
  });

  test('§15 it comes as it is said, not when all is done', async () => {
    const post = await sendToolCall(gateway, 'waits', asking({ progressToken: 1 }));
    const [response] = await once(post, 'response');
    const pieces = response.setEncoding('utf8')[Symbol.asyncIterator]();
    expect(eventsIn((await pieces.next()).value)).toMatchObject([
      { method: 'notifications/progress' },
    ]);
    goOn();
    expect(eventsIn((await pieces.next()).value)).toMatchObject([{ id: 1, result: {} }]);
    expect((await pieces.next()).done).toBe(true);
  });

  test('§15 a failure is its last event, too', async () => {
    const { status, text } = await callTool(gateway, 'fails', {}, asking({ progressToken: 1 }));
    expect(status).toBe(200);
    expect(eventsIn(text)).toEqual([
      expect.objectContaining({ method: 'notifications/progress' }),
      {
        jsonrpc: '2.0',
        id: 1,
        result: expect.objectContaining({ isError: true }),
      },
    ]);
  });

  test.each([
    { method: 'prompts/get', params: { name: 'talks' } },
    { method: 'resources/read', params: { uri: 'test://talks' } },
  ])('§15 $method streams, too', async ({ method, params }) => {
    const options = asking({ progressToken: 0 });
    const { headers, text } = await stateless(gateway, method, params, options);
    expect(headers['content-type']).toBe('text/event-stream');
    expect(eventsIn(text)).toMatchObject([
      { params: { progressToken: 0, progress: 1 } },
      { id: 1, result: { resultType: 'complete' } },
    ]);
  });

  test.each(['text/event-stream', 'TEXT/Event-Stream', 'text/event-stream;q=0.5, */*', BOTH])(
    '§15 Accept: %s takes a stream',
    async (accept) => {
      const options = asking({ progressToken: 1 }, accept);
      const { headers } = await callTool(gateway, 'talks', {}, options);
      expect(headers['content-type']).toBe('text/event-stream');
    },
  );
});

describe('answers in plain JSON', () => {
  const all = { progressToken: 1, [LOG_LEVEL]: 'debug' };

  test.each<{ what: string; meta?: StatelessOptions['meta']; accept?: string }>([
    { what: 'neither a progressToken nor a logLevel' },
    { what: 'a progressToken that is none', meta: { progressToken: { a: 1 } } },
    { what: 'a progressToken that is null', meta: { progressToken: null } },
    { what: 'a logLevel that is none', meta: { [LOG_LEVEL]: 'verbose' } },
    { what: 'a logLevel that is a number', meta: { [LOG_LEVEL]: 0 } },
    { what: 'a logLevel more severe than what is said', meta: { [LOG_LEVEL]: 'notice' } },
    { what: 'Accept of JSON only', meta: all, accept: 'application/json' },
    { what: 'Accept of anything', meta: all, accept: '*/*' },
    { what: 'Accept of any text', meta: all, accept: 'text/*' },
    { what: 'Accept of something like it', meta: all, accept: 'text/event-stream-x' },
  ])('§15 with $what', async ({ meta, accept }) => {
    const { status, headers, json } = await callTool(gateway, 'talks', {}, asking(meta, accept));
    expect(status).toBe(200);
    expect(headers['content-type']).toBe('application/json');
    expect(json.result.content).toEqual([{ type: 'text', text: 'done' }]);
  });

  test('§15 without Accept', async () => {
    const options = { meta: all, headers: { accept: undefined } };
    const { headers } = await callTool(gateway, 'talks', {}, options);
    expect(headers['content-type']).toBe('application/json');
  });

  test('§15 where nothing is said before the result', async () => {
    const { headers, json } = await callTool(gateway, 'silent', {}, asking(all));
    expect(headers['content-type']).toBe('application/json');
    expect(json.result.resultType).toBe('complete');
  });

  test('§7.1 and where the call is refused', async () => {
    const refused = await callTool(gateway, 'nope', {}, asking(all));
    expect(refused.headers['content-type']).toBe('application/json');
    expect(refused.json.error.code).toBe(-32602);
  });
});
