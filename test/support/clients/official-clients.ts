// The official clients in every way to negotiate an era, by one interface.
import { Client as Client2, type VersionNegotiationMode } from '@modelcontextprotocol/client';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { connect as connect1, createMemory as createMemory1, type Memory } from './sdk-1-client.ts';
import { connect as connect2, createMemory as createMemory2 } from './sdk-2-client.ts';

export interface OfficialClient extends Common {
  /** Negotiated. */
  readonly version: string | undefined;
  /** Undefined in the stateless era. */
  readonly sessionId: string | undefined;
  readonly memory: Memory;
  /** What it sent to /mcp and how that was answered: `POST tools/call 200`; oldest first. */
  readonly sent: readonly string[];
  /** What it was asked by tools. */
  readonly asked: readonly string[];
  /** Log messages that came. */
  readonly logged: readonly unknown[];
  /** URIs of resources that it was told have changed. */
  readonly updated: readonly string[];
  call(name: string, args?: Arguments, options?: CallOptions): Promise<CallAnswer>;
  /** Asks for log messages from this level on, in the way of its era, and calls. */
  callWithLog(name: string, level: 'warning'): Promise<CallAnswer>;
  /** Subscribes to changes of a resource, in the way of its era. */
  watch(uri: string): Promise<Subscription>;
}

interface Subscription {
  end(): Promise<unknown>;
  /** How the stream of it alone ended; the session era has one stream for all. */
  readonly closed?: Promise<string>;
}

export interface OfficialClientRow {
  readonly title: string;
  readonly era: 'session' | 'stateless';
  readonly version: string;
  /** Logs `ada` in where the gateway asks for it. */
  connect(url: URL): Promise<OfficialClient>;
}

/** What both official clients have under the same names. */
interface Common {
  listTools(): Promise<{ tools: readonly { readonly name: string }[] }>;
  listPrompts(): Promise<{ prompts: readonly { readonly name: string }[] }>;
  listResources(): Promise<{ resources: readonly { readonly uri: string }[] }>;
  listResourceTemplates(): Promise<{
    resourceTemplates: readonly { readonly uriTemplate: string }[];
  }>;
  getPrompt(params: {
    name: string;
    arguments: Record<string, string>;
  }): Promise<{ messages: readonly unknown[] }>;
  readResource(params: { uri: string }): Promise<{ contents: readonly unknown[] }>;
  complete(params: {
    ref: { type: 'ref/prompt'; name: string } | { type: 'ref/resource'; uri: string };
    argument: { name: string; value: string };
  }): Promise<{ completion: { values: readonly string[] } }>;
  close(): Promise<void>;
}

type Arguments = Record<string, unknown>;

interface CallOptions {
  readonly signal?: AbortSignal;
  readonly onprogress?: (progress: { progress: number; total?: number | undefined }) => void;
}

interface CallAnswer {
  readonly [member: string]: unknown;
  readonly content?: unknown;
  readonly structuredContent?: unknown;
  readonly isError?: unknown;
}

const SELF = { name: 'test', version: '1' };
const CAPABILITIES = { elicitation: {}, sampling: {} };
const ACCEPT = { action: 'accept', content: { name: 'Grace' } } as const;
const SUMMARY = {
  role: 'assistant',
  model: 'test-model',
  content: { type: 'text', text: 'In short.' },
} as const;

/** MCP 2026-07-28: logging is asked for by each request. */
const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';

export const OFFICIAL_CLIENTS: readonly OfficialClientRow[] = [
  { title: '1.32', era: 'session', version: '2025-11-25', connect: clientOne },
  ...(
    [
      ['2.4', undefined],
      ['2.4 with mode auto', 'auto'],
      ['2.4 pinned to 2026-07-28', { pin: '2026-07-28' }],
    ] as const
  ).map(([title, mode]) => ({
    title,
    era: mode === undefined ? ('session' as const) : ('stateless' as const),
    version: mode === undefined ? '2025-11-25' : '2026-07-28',
    connect: (url: URL) => clientTwo(url, mode),
  })),
];

async function clientOne(url: URL): Promise<OfficialClient> {
  const memory = createMemory1();
  const notes = createNotes();
  const { client, transport } = await connect1(url, memory, 'ada', {
    newClient() {
      const client = new Client1(SELF, { capabilities: CAPABILITIES });
      client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
        notes.asked.push(params.message);
        return ACCEPT;
      });
      client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => {
        notes.asked.push(JSON.stringify(params.messages));
        return SUMMARY;
      });
      client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => {
        notes.logged.push(params);
      });
      client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => {
        notes.updated.push(params.uri);
      });
      return client;
    },
    fetch: notes.fetch,
  });
  const call: OfficialClient['call'] = (name, args, options) =>
    client.callTool({ name, arguments: args }, undefined, options);
  return {
    ...notes,
    ...common(client),
    memory,
    version: transport.protocolVersion,
    sessionId: transport.sessionId,
    call,
    async callWithLog(name, level) {
      await client.setLoggingLevel(level);
      return call(name);
    },
    async watch(uri) {
      await client.subscribeResource({ uri });
      return { end: () => client.unsubscribeResource({ uri }) };
    },
  };
}

async function clientTwo(url: URL, mode?: VersionNegotiationMode): Promise<OfficialClient> {
  const memory = createMemory2();
  const notes = createNotes();
  const { client, transport } = await connect2(url, memory, undefined, {
    newClient() {
      const client = new Client2(SELF, {
        capabilities: CAPABILITIES,
        ...(mode !== undefined && { versionNegotiation: { mode } }),
      });
      client.setRequestHandler('elicitation/create', ({ params }) => {
        notes.asked.push(params.message);
        return ACCEPT;
      });
      client.setRequestHandler('sampling/createMessage', ({ params }) => {
        notes.asked.push(JSON.stringify(params.messages));
        return SUMMARY;
      });
      client.setNotificationHandler('notifications/message', ({ params }) => {
        notes.logged.push(params);
      });
      client.setNotificationHandler('notifications/resources/updated', ({ params }) => {
        notes.updated.push(params.uri);
      });
      return client;
    },
    fetch: notes.fetch,
  });
  return {
    ...notes,
    ...common(client),
    ...(mode === undefined ? inSession(client) : stateless(client)),
    memory,
    version: client.getNegotiatedProtocolVersion(),
    sessionId: transport.sessionId,
    call: (name, args, options) => client.callTool({ name, arguments: args }, options),
  };
}

type OfEra = Pick<OfficialClient, 'callWithLog' | 'watch'>;

const inSession = (client: Client2): OfEra => ({
  async callWithLog(name, level) {
    await client.setLoggingLevel(level);
    return client.callTool({ name });
  },
  async watch(uri) {
    await client.subscribeResource({ uri });
    return { end: () => client.unsubscribeResource({ uri }) };
  },
});

const stateless = (client: Client2): OfEra => ({
  callWithLog: (name, level) => client.callTool({ name, _meta: { [LOG_LEVEL]: level } }),
  async watch(uri) {
    const subscription = await client.listen({ resourceSubscriptions: [uri] });
    return { end: () => subscription.close(), closed: subscription.closed };
  },
});

const common = (client: Common): Common => ({
  listTools: () => client.listTools(),
  listPrompts: () => client.listPrompts(),
  listResources: () => client.listResources(),
  listResourceTemplates: () => client.listResourceTemplates(),
  getPrompt: (params) => client.getPrompt(params),
  readResource: (params) => client.readResource(params),
  complete: (params) => client.complete(params),
  close: () => client.close(),
});

function createNotes() {
  const sent: string[] = [];
  const noting: typeof fetch = async (input, init) => {
    const { pathname } = new URL(String(input));
    const answer = await fetch(input, init);
    if (pathname === '/mcp') {
      sent.push([init?.method, ...methodIn(init?.body), answer.status].join(' '));
    }
    return answer;
  };
  return {
    sent,
    asked: [] as string[],
    logged: [] as unknown[],
    updated: [] as string[],
    fetch: noting,
  };
}

/** A response has none. */
function methodIn(body: unknown): readonly string[] {
  if (typeof body !== 'string') return [];
  const { method }: { method?: string } = JSON.parse(body);
  return method === undefined ? [] : [method];
}
