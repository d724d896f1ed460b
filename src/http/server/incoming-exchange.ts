// One request and its reply: receives what node:http parsed as plain data, with its caller's address.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { TrustProxy } from '../../config/groups/http.ts';
import { Cancellation, type CancelSignal } from '../../platform/cancellation.ts';
import type { Clock } from '../../platform/clock.ts';
import type { RequestTrace } from '../../telemetry/tracing/tracing.ts';
import type { Endpoint } from '../endpoint/endpoint.ts';
import { type GatewayRequest, getHeader, type Reply } from '../endpoint/message.ts';
import type { LimitCheck } from '../limits/limiter.ts';
import {
  type Connection,
  type OwedReply,
  toAddress,
  UNKNOWN_ADDRESS,
} from './client-connections.ts';
import { type HeaderList, NO_ORIGIN, type RequestOrigin } from './headers.ts';
import { type IncomingBody, NOTHING_TO_RELEASE } from './read-body.ts';
import { NOWHERE, type RequestDestination } from './router.ts';
import type { MemoryOwner } from './transfer-memory.ts';

/** A request on its way to its reply. The body and the message are never kept here: a call may run for minutes. */
export interface IncomingExchange extends IncomingBody {
  readonly res: ServerResponse;
  readonly connection: Connection;
  readonly request: ReceivedRequest;
  /** Authority of a request target in absolute form, else undefined. */
  readonly authority: string | undefined;
  /** When the head arrived, by the clock's monotonic time. */
  readonly receivedAt: number;
  /** Counts the bytes of the reply against its connection. */
  readonly owed: OwedReply;
  destination: RequestDestination;
  origin: RequestOrigin;
  /** Set as soon as it is known. */
  endpoint: Endpoint | undefined;
  /** Set after a limit has checked the request. */
  limits: LimitCheck | undefined;
  /** The owner of the memory that the reply occupies. */
  owner: MemoryOwner;
  reply: Reply;
  headers: HeaderList;
  /** Label of the metrics. */
  route: string;
}

const NO_REPLY: Reply = { status: 500 };

/** Creates the function that reads a request from its response object. */
export function createReceive(
  clock: Clock,
  trust: TrustProxy,
  canonicalizePath: (path: string) => string,
) {
  const findClientIp = createFindClientIp(trust);

  return function receive(
    res: ServerResponse,
    connection: Connection,
    owed: OwedReply,
  ): IncomingExchange {
    const receivedAt = clock.monotonic();
    const { req } = res;
    // RFC 9112 §3.2: the request target, split and not decoded.
    const target = req.url ?? '/';
    const [, authority, rest = target] = target.startsWith('/')
      ? []
      : (ABSOLUTE.exec(target) ?? []);
    const mark = rest.indexOf('?');
    const path = mark === -1 ? rest : rest.slice(0, mark);
    const request = new ReceivedRequest(
      res,
      canonicalizePath(path === '' ? '/' : path),
      mark === -1 ? '' : rest.slice(mark + 1),
      findClientIp(req, connection.address),
    );
    return {
      res,
      connection,
      request,
      authority,
      receivedAt,
      owed,
      destination: NOWHERE,
      origin: NO_ORIGIN,
      endpoint: undefined,
      limits: undefined,
      owner: 'unauthenticated',
      reply: NO_REPLY,
      headers: [],
      route: NOWHERE.label,
      req,
      isRead: false,
      release: NOTHING_TO_RELEASE,
    };
  };
}

const ABSOLUTE = /^https?:\/\/([^/?#]*)(.*)$/i;

/** A class, so that no request needs a closure for a signal that few of them ask for. */
class ReceivedRequest implements GatewayRequest {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers: GatewayRequest['headers'];
  readonly clientIp: string;
  trace: RequestTrace | undefined = undefined;
  private readonly res: ServerResponse;
  private cancellation: Cancellation | undefined = undefined;

  constructor(res: ServerResponse, path: string, query: string, clientIp: string) {
    const { method = 'GET', headers } = res.req;
    this.method = method;
    this.path = path;
    this.query = query;
    this.headers = headers;
    this.clientIp = clientIp;
    this.res = res;
  }

  signal(): CancelSignal {
    if (this.cancellation !== undefined) return this.cancellation;
    const { res } = this;
    const cancellation = new Cancellation();
    this.cancellation = cancellation;
    runWhenClosed(res, () => {
      if (!res.writableFinished) cancellation.abort();
    });
    return cancellation;
  }
}

/** Runs the work as a part of the request's trace, if there is one. */
export const inTrace = <Result>(
  { request: { trace } }: IncomingExchange,
  work: () => Result,
): Result => (trace === undefined ? work() : trace.run(work));

/** Runs an idempotent task when the reply has been sent or the connection has closed. */
export function runWhenClosed(res: ServerResponse, task: () => void): void {
  if (res.destroyed) task();
  // Not `once`: the wrapper that removes the listener costs more than the task.
  else res.on('close', task);
}

// §8.2, `TRUST_PROXY`: the caller's address.

type FindClientIp = (req: IncomingMessage, address: string) => string;

/** Creates the function that takes the caller's address from the headers, which any client can write, or from the connection. */
function createFindClientIp(trust: TrustProxy): FindClientIp {
  switch (trust.kind) {
    case 'all':
      return (req, address) => {
        const claimed = listHops(req)[0] ?? (getHeader(req, 'x-real-ip')?.trim() || undefined);
        // The address of the connection is already canonical.
        return claimed === undefined ? address : toAddress(claimed);
      };
    case 'none':
      return (_req, address) => address;
    case 'hops':
      // With fewer entries than proxies, the request bypassed them: only the socket's address is certain.
      return (req, address) => {
        const claimed = listHops(req).at(-trust.hops);
        return claimed === undefined ? address : toAddress(claimed);
      };
    case 'networks':
      return (req, address) => findFirstUntrusted([...listHops(req), address], trust.trusts);
  }
}

/** More proxies than any deployment has, since any client can write a long list. */
const MAX_HOPS = 32;

/** From the right, the first that is not a trusted proxy; if all are trusted, the leftmost. */
function findFirstUntrusted(hops: readonly string[], trusts: (address: string) => boolean) {
  let last = UNKNOWN_ADDRESS;
  for (let at = hops.length - 1; at >= 0 && at >= hops.length - MAX_HOPS; at -= 1) {
    last = toAddress(hops[at]);
    if (!trusts(last)) break;
  }
  return last;
}

function listHops(req: IncomingMessage): readonly string[] {
  const forwardedFor = getHeader(req, 'x-forwarded-for');
  return forwardedFor?.trim() ? forwardedFor.split(',').map((entry) => entry.trim()) : [];
}
