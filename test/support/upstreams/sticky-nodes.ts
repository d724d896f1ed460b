// Two nodes of one MCP server, each with its own sessions, and in front of them a balancer that keeps a session at its node by a
// cookie.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { closeAfterTest } from '../lifetimes.ts';
import { listenOnLoopback } from './listen.ts';

export interface StickyNodes {
  readonly url: string;
  /** Sessions that each node has opened. */
  readonly opened: readonly number[];
  /** Requests that named a session at a node that does not know it. */
  lost(): number;
  /** Of each request: its session, the subject of its token, and its cookies. */
  readonly seen: readonly SeenRequest[];
}

export interface SeenRequest {
  readonly method: string;
  readonly session: string | undefined;
  readonly authorization: string | undefined;
  readonly cookie: string | undefined;
}

/** `rotates`: the cookie has another value with each answer, as AWSALB does; else it is set where none came, as by HAProxy. */
export async function startStickyNodes({ rotates }: { rotates: boolean }): Promise<StickyNodes> {
  const nodes = [new Set<string>(), new Set<string>()];
  const opened = [0, 0];
  const seen: SeenRequest[] = [];
  let lost = 0;
  let turn = 0;
  let serial = 0;

  async function serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    let text = '';
    for await (const chunk of req) text += chunk;
    const { id, method = req.method } = text === '' ? {} : JSON.parse(text);
    const named = req.headers['mcp-session-id']?.toString();
    const { authorization, cookie } = req.headers;
    seen.push({ method, session: named, authorization, cookie });
    const chosen = /(?:^|; )NODE=([01])/.exec(cookie ?? '')?.[1];
    turn += 1;
    const at = chosen === undefined ? turn % 2 : Number(chosen);
    const node = nodes[at];
    if (rotates) res.setHeader('set-cookie', `NODE=${at}-${++serial}; Path=/; Max-Age=604800`);
    else if (chosen === undefined) res.setHeader('set-cookie', `NODE=${at}; path=/`);
    if (node === undefined) throw new Error('There is no such node.');
    const answer = (members: object) =>
      void res
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id, ...members }));
    if (method === 'initialize') {
      const session = `${at}-${opened[at]}`;
      opened[at] = (opened[at] ?? 0) + 1;
      node.add(session);
      res.setHeader('mcp-session-id', session);
      answer({ result: INITIALIZED });
    } else if (method === 'server/discover') res.writeHead(400).end();
    else if (named === undefined || !node.has(named)) {
      lost += 1;
      res.writeHead(404).end();
    } else if (req.method === 'GET') res.writeHead(405).end();
    else if (id === undefined) {
      if (req.method === 'DELETE') node.delete(named);
      res.writeHead(202).end();
    } else if (method === 'tools/list') answer({ result: { tools: [TOOL] } });
    else answer({ result: { content: [{ type: 'text', text: named }] } });
  }

  const { url } = closeAfterTest(await listenOnLoopback((req, res) => void serve(req, res)));
  return { url, opened, lost: () => lost, seen };
}

const TOOL = { name: 'any', inputSchema: { type: 'object' } };

const INITIALIZED = {
  protocolVersion: '2025-11-25',
  capabilities: { tools: {} },
  serverInfo: { name: 'sticky', version: '1' },
};
