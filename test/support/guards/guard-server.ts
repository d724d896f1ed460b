// A guard behind HTTP that answers as the test likes.

import type { IncomingHttpHeaders } from 'node:http';
import { listenOnLoopback } from '../upstreams/listen.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests look into messages of every shape
export type AskedOverHttp = any;

export interface GuardServer {
  readonly url: string;
  /** Oldest first. */
  readonly asked: readonly {
    readonly body: AskedOverHttp;
    /** The body as it came, with numbers as they were spelled. */
    readonly text: string;
    readonly headers: IncomingHttpHeaders;
  }[];
  /** How many requests hung up before they were answered. */
  readonly left: { count: number };
  /** From now on; undefined never answers. A text is sent as it is. */
  answer(judge: (body: AskedOverHttp) => unknown, status?: number): void;
  close(): Promise<void>;
}

export async function startGuardServer(
  first: (body: AskedOverHttp) => unknown = () => ({ decision: 'pass' }),
): Promise<GuardServer> {
  const asked: GuardServer['asked'][number][] = [];
  const left = { count: 0 };
  let judge = first;
  let status = 200;
  const { url, close } = await listenOnLoopback(async (req, res) => {
    let text = '';
    for await (const piece of req.setEncoding('utf8')) text += piece;
    const body = JSON.parse(text);
    asked.push({ body, text, headers: req.headers });
    res.on('close', () => {
      if (!res.writableEnded) left.count += 1;
    });
    const answer = await judge(body);
    if (answer === undefined) return;
    res.writeHead(status, { 'content-type': 'application/json', location: '/elsewhere' });
    res.end(typeof answer === 'string' ? answer : JSON.stringify(answer));
  });
  return {
    url,
    asked,
    left,
    answer(next, nextStatus = 200) {
      judge = next;
      status = nextStatus;
    },
    close,
  };
}
