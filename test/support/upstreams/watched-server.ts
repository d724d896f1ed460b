// Servers behind two replicas whose resources change, of each kind: what they are subscribed to, and what they say.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { expect } from 'vitest';
import type { SessionClient } from '../clients/session-client.ts';
import { listenOnLoopback } from './listen.ts';
import { scripted } from './stdio.ts';

export const RESOURCES = ['a://1', 'a://2', 'a://fence'] as const;

export interface WatchedServer {
  /** Its entry in the configuration file. */
  readonly entry: object;
  /** Says that the resource has changed, to everybody, as careless servers do; processes of one replica alone. */
  announce(uri: string, client: SessionClient): Promise<void>;
  /** What it is subscribed to; of processes, that of the replica of the client. */
  listWanted(client: SessionClient): Promise<readonly string[]>;
  /** Whether it is one for both replicas. */
  readonly isForAll: boolean;
  /** Streams that are open for clients' sessions; undefined for processes. */
  countStreams(replicas: number): number | undefined;
  /** Streams that were opened ever, by whoever; undefined for processes. */
  countOpened(): number | undefined;
  /** Loses all that it knows, and is there again when this resolves. */
  restart(client: SessionClient): Promise<void>;
  close(): Promise<void>;
}

interface Subscriber {
  readonly uris: Set<string>;
  stream: ServerResponse | undefined;
}

const PATIENT = { timeout: 15_000, interval: 5 };
const NO_LISTS = { tools: [], prompts: [], resources: [], resourceTemplates: [], contents: [] };
const LISTING = {
  ...NO_LISTS,
  resources: RESOURCES.map((uri) => ({ uri, name: uri })),
  capabilities: { resources: { subscribe: true } },
  serverInfo: { name: 'watched', version: '1' },
};

const updated = (uri: string) => ({ method: 'notifications/resources/updated', params: { uri } });

export async function startWatchedHttp(era: 'session' | 'stateless'): Promise<WatchedServer> {
  /** By the id of the session, or of the stream. */
  const subscribers = new Map<string, Subscriber>();
  let lastId = 0;
  let opened = 0;

  const write = (res: ServerResponse, message: object) =>
    res.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`);

  function answer(res: ServerResponse, id: unknown, members: object, session?: string): void {
    res.writeHead(200, {
      'content-type': 'application/json',
      ...(session !== undefined && { 'mcp-session-id': session }),
    });
    res.end(JSON.stringify({ jsonrpc: '2.0', id, ...members }));
  }

  function openStream(res: ServerResponse, subscriber: Subscriber, onClose: () => void): void {
    res.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    subscriber.stream = res;
    opened += 1;
    res.on('close', () => {
      if (subscriber.stream === res) subscriber.stream = undefined;
      onClose();
    });
  }

  async function handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    let text = '';
    for await (const chunk of req) text += chunk;
    const { id, method, params } = text === '' ? { method: req.method } : JSON.parse(text);
    if (era === 'session') handleInSession(req, res, { id, method, params });
    else if (method === 'server/discover') {
      answer(res, id, { result: { ...LISTING, supportedVersions: ['2026-07-28'], ...COMPLETE } });
    } else if (method === 'subscriptions/listen') {
      lastId += 1;
      const key = String(lastId);
      const { notifications } = params;
      const uris: string[] = notifications.resourceSubscriptions ?? [];
      const subscriber: Subscriber = { uris: new Set(uris), stream: undefined };
      subscribers.set(key, subscriber);
      openStream(res, subscriber, () => subscribers.delete(key));
      write(res, {
        method: 'notifications/subscriptions/acknowledged',
        params: { notifications },
      });
    } else answer(res, id, { result: { ...LISTING, ...COMPLETE } });
  }

  function handleInSession(
    req: IncomingMessage,
    res: ServerResponse,
    { id, method, params }: { id: unknown; method: string; params: { uri: string } },
  ): void {
    const session = String(req.headers['mcp-session-id']);
    const subscriber = subscribers.get(session);
    if (method === 'initialize') {
      lastId += 1;
      subscribers.set(`s-${lastId}`, { uris: new Set(), stream: undefined });
      const result = { ...LISTING, protocolVersion: '2025-11-25' };
      answer(res, id, { result }, `s-${lastId}`);
    } else if (method === 'server/discover') {
      answer(res, id, { error: { code: -32600, message: 'Bad' } });
    } else if (subscriber === undefined) res.writeHead(404).end();
    else if (method === 'GET') openStream(res, subscriber, () => {});
    else if (method === 'DELETE') {
      subscribers.delete(session);
      subscriber.stream?.end();
      res.writeHead(204).end();
    } else if (id === undefined) res.writeHead(202).end();
    else {
      if (method === 'resources/subscribe') subscriber.uris.add(params.uri);
      if (method === 'resources/unsubscribe') subscriber.uris.delete(params.uri);
      answer(res, id, { result: method.startsWith('resources/') ? LISTING : NO_LISTS });
    }
  }

  const { url, close } = await listenOnLoopback(
    (req, res) => void handle(req, res).catch(() => res.destroy()),
  );
  const listStreams = () => [...subscribers.values()].flatMap(({ stream }) => stream ?? []);
  return {
    entry: { url },
    isForAll: true,
    async announce(uri) {
      for (const stream of listStreams()) write(stream, updated(uri));
    },
    listWanted: async () => [
      ...new Set([...subscribers.values()].flatMap(({ uris }) => [...uris])),
    ],
    // In the session era each replica has one for itself, which hears of lists.
    countStreams: (replicas) => listStreams().length - (era === 'session' ? replicas : 0),
    countOpened: () => opened,
    async restart() {
      const streams = listStreams();
      subscribers.clear();
      for (const stream of streams) stream.destroy();
    },
    close,
  };
}

const COMPLETE = { resultType: 'complete' };

/** One process at each replica, which all share. */
export function describeWatchedProcesses(): WatchedServer {
  async function run(client: SessionClient, name: string, given: object = {}): Promise<string> {
    const { result } = await client.ask('tools/call', { name: `s__${name}`, arguments: given });
    if (result.isError) throw new Error(result.content[0].text);
    return result.content[0].text;
  }
  return {
    entry: { ...scripted('more-resources'), isolation: 'shared' },
    isForAll: false,
    announce: async (uri, client) => void (await run(client, 'notify', updated(uri))),
    async listWanted(client) {
      const wanted = new Set<string>();
      for (const change of JSON.parse(await run(client, 'subscriptions')) as string[]) {
        if (change.startsWith('+')) wanted.add(change.slice(1));
        else wanted.delete(change.slice(1));
      }
      return [...wanted];
    },
    countStreams: () => undefined,
    countOpened: () => undefined,
    async restart(client) {
      const former = await run(client, 'pid');
      process.kill(Number(former), 'SIGKILL');
      await expect
        .poll(async () => {
          const pid = await run(client, 'pid').catch(() => former);
          return pid !== former;
        }, PATIENT)
        .toBe(true);
    },
    close: async () => {},
  };
}
