// Long calls of the official client 1.x, which comes back for its answers by itself.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Tally } from './tally.ts';

export interface LongCalls {
  /** Begins no more; resolves when all have ended. */
  stop(): Promise<void>;
  /** Begins no more; does not wait. */
  close(): void;
}

export interface LongCallsOptions {
  readonly url: string;
  readonly getToken: () => Promise<string>;
  readonly tally: Tally;
  /** Under way at any time. */
  readonly count: number;
  readonly shortestMs: number;
  readonly longestMs: number;
  /** Milliseconds from its start when a call whose connection breaks cannot be resumed yet. */
  readonly mayFailFirstMs: number;
}

const CALLS_PER_CLIENT = 5;
/** Far longer than all that the gateway and its client may wait. */
const TIMEOUT_MS = 90_000;

export async function startLongCalls(options: LongCallsOptions): Promise<LongCalls> {
  const { count, getToken, url } = options;
  let isOver = false;
  const clients = await Promise.all(
    Array.from({ length: Math.ceil(count / CALLS_PER_CLIENT) }, async () => {
      const client = new Client({ name: 'long-calls', version: '1' });
      const transport = new StreamableHTTPClientTransport(new URL('/mcp', url), {
        requestInit: { headers: { authorization: `Bearer ${await getToken()}` } },
      });
      // A connection that breaks is reported here, too.
      transport.onerror = () => {};
      await client.connect(transport);
      return client;
    }),
  );

  async function callUntilOver(client: Client, caller: number): Promise<void> {
    for (let n = 0; !isOver; n += 1) await callOnce(client, `${caller}/${n}`, options);
  }

  const callers = Array.from({ length: count }, (_, caller) => {
    const client = clients[caller % clients.length];
    if (client === undefined) throw new Error('There is no client');
    return callUntilOver(client, caller);
  });
  return {
    close() {
      isOver = true;
    },
    async stop() {
      isOver = true;
      await Promise.all(callers);
      await Promise.all(clients.map((client) => client.close()));
    },
  };
}

async function callOnce(
  client: Client,
  text: string,
  { tally, shortestMs, longestMs, mayFailFirstMs }: LongCallsOptions,
): Promise<void> {
  const ms = Math.round(shortestMs + Math.random() * (longestMs - shortestMs));
  const startedAt = performance.now();
  const age = () => performance.now() - startedAt;
  try {
    const params = { name: 'slow', arguments: { ms, text } };
    const { content } = await client.callTool(params, undefined, { timeout: TIMEOUT_MS });
    const said = JSON.stringify(content);
    if (said === JSON.stringify([{ type: 'text', text }])) tally.record('good', age());
    else tally.recordWrong(`${text} of ${ms} ms was answered ${said}`, age());
  } catch (error) {
    const story = `${text} of ${ms} ms failed after ${Math.round(age())} ms: ${String(error)}`;
    if (age() <= mayFailFirstMs) tally.record('refused', age());
    else tally.recordWrong(story, age());
  }
}
