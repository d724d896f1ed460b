// A server of the session era that asks, tells and fails in every way: the official SDK 1.x.

import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js';
import {
  CallToolRequestSchema,
  GetPromptRequestSchema,
  ListPromptsRequestSchema,
  ListResourcesRequestSchema,
  ListToolsRequestSchema,
  McpError,
  ReadResourceRequestSchema,
  type ServerNotification,
  type ServerRequest,
} from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import { listenOnLoopback } from './listen.ts';
import { takeTurns } from './turns.ts';

type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>;
type Args = Readonly<Record<string, unknown>>;

export interface RelayServer1 {
  readonly url: string;
  /** `step`: what a tool waits for goes on. `waiting`, `cancelled`: what tools say. */
  readonly events: EventEmitter;
  /** What tools heard of their questions, as JSON text. */
  readonly heard: readonly string[];
  /** What the tool `say` was called with, by session. */
  readonly wordsBySession: ReadonlyMap<string, readonly string[]>;
  close(): Promise<void>;
}

const FORM = { type: 'object', properties: { name: { type: 'string' } } } as const;

const ANY = z.looseObject({});

export const formQuestion = (message: string) => ({
  method: 'elicitation/create' as const,
  params: { message, requestedSchema: FORM },
});

const SAMPLE_QUESTION = {
  method: 'sampling/createMessage' as const,
  params: {
    messages: [{ role: 'user' as const, content: { type: 'text' as const, text: 'Hello?' } }],
    maxTokens: 10,
  },
};

/** What a user is asked before the call can go on. */
export const URL_QUESTION = {
  mode: 'url',
  message: 'Log in to A.',
  url: 'https://a.example/log-in',
  elicitationId: 'e-1',
};

const createUrlRequired = () =>
  new McpError(-32042, 'Log in first.', { elicitations: [URL_QUESTION], 'x-more': 1 });

export async function startRelayServer1(): Promise<RelayServer1> {
  const events = new EventEmitter();
  const heard: string[] = [];
  const wordsBySession = new Map<string, readonly string[]>();
  const transports = new Map<string, StreamableHTTPServerTransport>();
  const said = (value: unknown) => ({
    content: [{ type: 'text' as const, text: JSON.stringify(value) }],
  });

  /** What a question came to: its answer, or its error. */
  async function ask({ sendRequest }: Extra, question: ServerRequest): Promise<unknown> {
    const answer = await sendRequest(question, ANY, { timeout: 600_000 }).catch(
      ({ code, message, data }: McpError) => ({ code, message, data }),
    );
    heard.push(JSON.stringify(answer));
    return answer;
  }

  /** The same on the stream of the session (GET), as servers ask that do not know of which call they are. */
  async function askAside(
    server: Server,
    question: ServerRequest,
    signal?: AbortSignal,
  ): Promise<unknown> {
    const answer = await server
      .request(question, ANY, { timeout: 600_000, ...(signal && { signal }) })
      .catch(({ code, message, data }: McpError) => ({ code, message, data }));
    heard.push(JSON.stringify(answer));
    events.emit('heard', answer);
    return answer;
  }

  const tools: Readonly<
    Record<string, (args: Args, extra: Extra, server: Server) => Promise<object>>
  > = {
    echo: async (args, { _meta }) => said({ args, trace: _meta?.traceparent }),
    say: async ({ word, turns }, { sessionId = '' }) => {
      const words = wordsBySession.get(sessionId) ?? [];
      wordsBySession.set(sessionId, [...words, String(word)]);
      await takeTurns(turns);
      return { content: [{ type: 'text', text: String(word) }] };
    },
    count: async ({ word, turns }, { _meta, sendNotification }) => {
      for (const progress of [1, 2, 3]) {
        await sendNotification({
          method: 'notifications/progress',
          params: { progressToken: _meta?.progressToken ?? 0, progress, message: String(word) },
        });
        await takeTurns(turns);
      }
      return { content: [{ type: 'text', text: String(word) }] };
    },
    declared: async (_args, _extra, server) => said(server.getClientCapabilities()),
    fails: async () => ({ ...said('failed'), isError: true }),
    'url-required': async () => {
      throw createUrlRequired();
    },
    error: async () => {
      throw new McpError(-32099, 'Not today', { why: 'because' });
    },
    ask: async (_args, extra) => said(await ask(extra, formQuestion('Who?'))),
    'ask-twice': async (_args, extra) => {
      const first = await ask(extra, formQuestion('First?'));
      return said([first, await ask(extra, formQuestion('Second?'))]);
    },
    'ask-both': async (_args, extra) =>
      said(
        await Promise.all([ask(extra, formQuestion('One?')), ask(extra, formQuestion('Other?'))]),
      ),
    'ask-url': async (_args, extra) =>
      said(
        await ask(extra, {
          method: 'elicitation/create',
          params: {
            mode: 'url',
            message: 'Log in.',
            url: 'https://example.com/log-in',
            elicitationId: 'e-1',
          },
        }),
      ),
    sample: async (_args, extra) => said(await ask(extra, SAMPLE_QUESTION)),
    roots: async (_args, extra) => said(await ask(extra, { method: 'roots/list' })),
    'ask-aside': async (_args, _extra, server) =>
      said(await askAside(server, formQuestion('Who?'))),
    'sample-aside': async (_args, _extra, server) => said(await askAside(server, SAMPLE_QUESTION)),
    'roots-aside': async (_args, _extra, server) =>
      said(await askAside(server, { method: 'roots/list' })),
    'ask-aside-later': async (_args, _extra, server) => {
      void once(events, 'step').then(() => askAside(server, formQuestion('Who?')));
      return said('asked nobody yet');
    },
    'ask-aside-in-vain': async (_args, extra, server) => {
      const cancelling = new AbortController();
      events.once('step', () => cancelling.abort());
      const answer = await askAside(server, formQuestion('Who?'), cancelling.signal);
      await wait(extra);
      return said(answer);
    },
    /** While others go on that end as it asks. */
    'ask-aside-as-others-end': async (_args, _extra, server) => {
      events.emit('waiting');
      await once(events, 'ask');
      const asked = askAside(server, formQuestion('Who?'));
      events.emit('step');
      return said(await asked);
    },
    'wait-then-ask-aside': async (_args, extra, server) => {
      await wait(extra);
      return said(await askAside(server, formQuestion('Who?')));
    },
    'ask-then-wait': async (_args, extra) => {
      const answer = await ask(extra, formQuestion('Who?'));
      await wait(extra);
      return said(answer);
    },
    'ask-then-fail': async (_args, extra) => {
      await ask(extra, formQuestion('Who?'));
      throw new McpError(-32099, 'Not today', { why: 'because' });
    },
    'ask-then-tell': async (_args, extra) => {
      const answer = await ask(extra, formQuestion('Who?'));
      await tell(extra, 1);
      return said(answer);
    },
    tell: async (_args, extra) => {
      for (const progress of [1, 2]) await tell(extra, progress);
      return said('told');
    },
    wait: async (_args, extra) => {
      await wait(extra);
      return said('waited');
    },
    steps: async ({ steps }, extra) => {
      for (let step = 1; step <= Number(steps); step += 1) {
        await wait(extra);
        await tell(extra, step);
      }
      await wait(extra);
      return said('stepped');
    },
    'ask-and-leave': async (_args, extra) => {
      const asked = ask(extra, formQuestion('Who?'));
      await wait(extra);
      void asked;
      return said('left');
    },
    /** Answers its call without waiting for the answer to its question. */
    'ask-and-answer-much': async ({ bytes }, extra) => {
      void ask(extra, formQuestion('Who?'));
      return said('x'.repeat(Number(bytes)));
    },
  };

  /** Until the test says `step`, or the call is cancelled. */
  async function wait({ signal }: Extra): Promise<void> {
    const stepped = once(events, 'step', { signal }).catch((error: unknown) => {
      events.emit('cancelled');
      throw error;
    });
    events.emit('waiting');
    await stepped;
  }

  async function tell({ sendNotification, _meta }: Extra, progress: number): Promise<void> {
    await sendNotification({
      method: 'notifications/message',
      params: { level: 'warning', logger: 'steps', data: { progress } },
    });
    const progressToken = _meta?.progressToken;
    if (progressToken === undefined) return;
    await sendNotification({
      method: 'notifications/progress',
      params: { progressToken, progress, total: 2, message: `step ${progress}` },
    });
  }

  function createServer(): Server {
    const server = new Server(
      { name: 'relay-1', version: '1.0.0' },
      {
        capabilities: { tools: {}, prompts: {}, resources: {}, logging: {} },
        enforceStrictCapabilities: false,
      },
    );
    server.setRequestHandler(ListToolsRequestSchema, () => ({
      tools: Object.keys(tools).map((name) => ({ name, inputSchema: { type: 'object' as const } })),
    }));
    server.setRequestHandler(ListPromptsRequestSchema, () => ({
      prompts: ['plain', 'ask', 'error', 'url-required'].map((name) => ({ name })),
    }));
    server.setRequestHandler(ListResourcesRequestSchema, () => ({
      resources: [{ name: 'a', uri: 'test://a' }],
    }));
    server.setRequestHandler(CallToolRequestSchema, ({ params }, extra) => {
      const tool = tools[params.name];
      if (tool === undefined) throw new McpError(-32602, `Unknown tool ${params.name}`);
      return tool(params.arguments ?? {}, extra, server);
    });
    server.setRequestHandler(GetPromptRequestSchema, async ({ params: { name } }, extra) => {
      if (name === 'error') throw new McpError(-32099, 'Not today', { why: 'because' });
      if (name === 'url-required') throw createUrlRequired();
      const text = name === 'ask' ? await ask(extra, formQuestion('Who?')) : name;
      return {
        messages: [{ role: 'user', content: { type: 'text', text: JSON.stringify(text) } }],
        'x-member': 1,
      };
    });
    server.setRequestHandler(ReadResourceRequestSchema, async ({ params: { uri } }) => ({
      contents: [{ uri, text: 'read', 'x-part': 1 }],
      cache: 'its own',
    }));
    return server;
  }

  async function openSession(): Promise<StreamableHTTPServerTransport> {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void transports.set(id, transport),
    });
    await createServer().connect(transport);
    return transport;
  }

  async function handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const id = req.headers['mcp-session-id'];
    const known = typeof id === 'string' ? transports.get(id) : undefined;
    await (known ?? (await openSession())).handleRequest(req, res);
  }

  const { url, close } = await listenOnLoopback((req, res) => {
    handle(req, res).catch(() => res.destroy());
  });
  return { url, events, heard, wordsBySession, close };
}
