// What the official clients of both versions have in common, and what they note for the test.
import type { Memory } from './sdk-1-client.ts';

export interface OfficialClient extends CommonMethods {
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
export interface CommonMethods {
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

export const CLIENT_INFO = { name: 'test', version: '1' };
export const CAPABILITIES = { elicitation: {}, sampling: {} };
export const ACCEPT = { action: 'accept', content: { name: 'Grace' } } as const;
export const SUMMARY = {
  role: 'assistant',
  model: 'test-model',
  content: { type: 'text', text: 'In short.' },
} as const;

export const commonMethodsOf = (client: CommonMethods): CommonMethods => ({
  listTools: () => client.listTools(),
  listPrompts: () => client.listPrompts(),
  listResources: () => client.listResources(),
  listResourceTemplates: () => client.listResourceTemplates(),
  getPrompt: (params) => client.getPrompt(params),
  readResource: (params) => client.readResource(params),
  complete: (params) => client.complete(params),
  close: () => client.close(),
});

export function createNotes() {
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
