// A service of several processes (WORKERS) over a Redis of its own, and who of them answers.
import { Agent } from 'node:http';
import { expect } from 'vitest';
import { writeFileIn } from '../catalogs/catalog-files.ts';
import { type EventStream, openEvents } from '../clients/event-stream.ts';
import { closeAfterTest } from '../lifetimes.ts';
import { startRedis } from '../stores/redis.ts';
import { INITIALIZE_REQUEST } from './gateway.ts';
import {
  type Env,
  type LaunchOptions,
  makeFolder,
  type RunningPostern,
  startPostern,
} from './process.ts';

/**
 * `who` names its process, `works` takes a while, `reports` says first that it has begun, `waits` for its
 * cancellation, `asks` the client.
 */
export const WORKER_CATALOG = `
import { setTimeout as pause } from 'node:timers/promises';
import { createLocalCatalog, defineTool, elicit } from 'postern/define';

const text = (value) => ({ content: [{ type: 'text', text: String(value) }] });
const tool = (name, run) =>
  defineTool({ name, description: name, inputSchema: { type: 'object' }, run });
const form = { type: 'object', properties: { name: { type: 'string' } } };
const who = tool('who', () => text(process.pid));
const works = tool('works', async () => text(await pause(20, process.pid)));
const reports = tool('reports', async (_args, { log }) => {
  log('info', 'begun');
  return text(await pause(100, process.pid));
});
const waits = tool('waits', (_args, { signal, log }) => {
  log('info', 'begun');
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(text('late'))));
});
const asks = tool('asks', async (_args, { ask }) => {
  const { who: answer } = await ask({ who: elicit('Who are you?', form) });
  return text(answer.content.name);
});
export default createLocalCatalog({ logging: true, tools: [who, works, reports, waits, asks] });
`;

export interface WorkersOptions extends LaunchOptions {
  readonly env?: Env;
  readonly count?: number;
}

/** Starts them, and waits until all serve. */
export async function startWorkers(options: WorkersOptions = {}): Promise<RunningPostern> {
  const { env = {}, count = 2, ...how } = options;
  const redis = closeAfterTest(await startRedis());
  const folder = await makeFolder();
  const catalog = await writeFileIn(folder, 'catalog.mjs', WORKER_CATALOG);
  const service = await startPostern(
    {
      AUTH_REQUIRED: 'false',
      MCP_RATE_LIMIT_MAX: '1000000',
      REDIS_URL: redis.url,
      WORKERS: String(count),
      ...env,
    },
    how.npm ? how : { args: ['start', '--catalog', `${folder}/${catalog}`], ...how },
  );
  // One of them answers; on a busy machine the last may take as long again.
  await expect.poll(() => service.stdout, { timeout: 30_000 }).toContain('"Listening."');
  return service;
}

/** A connection that is kept, so that one worker answers all that it carries. */
export interface WorkerConnection {
  readonly pid: number;
  post(body: object, headers?: Readonly<Record<string, string>>): Promise<EventStream>;
  call(name: string, session: string): Promise<EventStream>;
  get(path: string): Promise<EventStream>;
  close(): void;
}

export async function openConnection(port: number): Promise<WorkerConnection> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const post = (body: object, headers = {}) => openEvents({ port, agent, body, headers });
  const call = (name: string, session: string) =>
    post(
      { jsonrpc: '2.0', id: name, method: 'tools/call', params: { name, arguments: {} } },
      { 'mcp-session-id': session, accept: 'application/json, text/event-stream' },
    );
  const opened = await post(INITIALIZE_REQUEST);
  await opened.text();
  const answer = await call('who', String(opened.headers['mcp-session-id']));
  const pid = Number(JSON.parse(await answer.text()).result.content[0].text);
  const get = (path: string) => openEvents({ port, agent, method: 'GET', path });
  return { pid, post, call, get, close: () => agent.destroy() };
}

/** A connection to each of the workers. */
export async function connectToEach(port: number, count = 2): Promise<readonly WorkerConnection[]> {
  const byPid = new Map<number, WorkerConnection>();
  while (byPid.size < count) {
    const connection = await openConnection(port);
    if (byPid.has(connection.pid)) connection.close();
    else byPid.set(connection.pid, connection);
  }
  return [...byPid.values()];
}

/** Whether the process is there. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
