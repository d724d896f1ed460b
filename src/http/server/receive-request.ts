// From what node:http parsed to plain data: the request, its caller's address, and its canonical path.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { TrustProxy } from '../../config/groups/http.ts';
import { canonicalizeAddress } from '../../platform/address.ts';
import { Cancellation, type CancelSignal } from '../../platform/cancellation.ts';
import { type GatewayRequest, getHeader } from '../endpoint/message.ts';
import { type IncomingBody, openBody } from './read-body.ts';

/** A request as it came in, with what only the transport knows. */
export interface ReceivedRequest {
  readonly request: GatewayRequest;
  /** Authority of a request target in absolute form, else undefined. */
  readonly authority: string | undefined;
  /** For the body reader alone. */
  readonly body: IncomingBody;
  /** When the head arrived, by the clock's monotonic time. */
  readonly receivedAt: number;
}

const ABSOLUTE = /^https?:\/\/([^/?#]*)(.*)$/i;

/** `address` is that of the connection, in its one spelling; or `unknown`. */
export function receiveRequest(
  res: ServerResponse,
  receivedAt: number,
  address: string,
  ways: { readonly findClientIp: FindClientIp; readonly canonicalizePath: CanonicalizePath },
): ReceivedRequest {
  const { req } = res;
  // RFC 9112 §3.2: the request target, taken apart and not decoded.
  const target = req.url ?? '/';
  const [, authority, rest = target] = target.startsWith('/') ? [] : (ABSOLUTE.exec(target) ?? []);
  const mark = rest.indexOf('?');
  const path = mark === -1 ? rest : rest.slice(0, mark);
  let signal: CancelSignal | undefined;
  return {
    request: {
      method: req.method ?? 'GET',
      path: ways.canonicalizePath(path === '' ? '/' : path),
      query: mark === -1 ? '' : rest.slice(mark + 1),
      headers: req.headers,
      clientIp: ways.findClientIp(req, address),
      signal() {
        if (signal !== undefined) return signal;
        const cancellation = new Cancellation();
        signal = cancellation;
        runWhenClosed(res, () => {
          if (!res.writableFinished) cancellation.abort();
        });
        return signal;
      },
    },
    authority,
    body: openBody(req),
    receivedAt,
  };
}

/**
 * Runs the task, for which a second time is no matter, when the reply has been sent or the connection
 * has closed.
 */
export function runWhenClosed(res: ServerResponse, task: () => void): void {
  if (res.destroyed) task();
  // Not once: the wrapper that takes the listener away again costs more than the task.
  else res.on('close', task);
}

// §8.2, `TRUST_PROXY`: the caller's address.

/** Headers, which anybody can write, tell the caller's address, or that of the connection does. */
type FindClientIp = (req: IncomingMessage, address: string) => string;

/** An address in its one spelling, or this; text of a header never becomes part of a key. */
const UNKNOWN = 'unknown';

/** Chosen once by `TRUST_PROXY`. */
export function createFindClientIp(trust: TrustProxy): FindClientIp {
  switch (trust.kind) {
    case 'all':
      return (req, address) => {
        const said = listHops(req)[0] ?? (getHeader(req, 'x-real-ip')?.trim() || undefined);
        // That of the connection is in its one spelling already.
        return said === undefined ? address : toAddress(said);
      };
    case 'none':
      return (_req, address) => address;
    case 'hops':
      // With fewer entries than proxies somebody came past them: only the socket is certain.
      return (req, address) => {
        const said = listHops(req).at(-trust.hops);
        return said === undefined ? address : toAddress(said);
      };
    case 'networks':
      return (req, address) => findFirstUntrusted([...listHops(req), address], trust.trusts);
  }
}

/** Nobody has so many proxies, and anybody can write a long list. */
const MAX_HOPS = 32;

/** From the right, the first that is no trusted proxy; all trusted: the leftmost. */
function findFirstUntrusted(hops: readonly string[], trusts: (address: string) => boolean) {
  let last = UNKNOWN;
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

/** An address that anybody may have written; or `unknown`. */
export function toAddress(text: string | undefined): string {
  if (text === undefined) return UNKNOWN;
  return canonicalizeAddress(text) ?? canonicalizeAddress(removePort(text)) ?? UNKNOWN;
}

/** `ip:port` and `[v6]:port` lose the port, `[v6]` its brackets. */
const removePort = (text: string) => {
  const [, bracketed, plain] = /^(?:\[([^\]]*)\](?::\d{1,5})?|([^:]*):\d{1,5})$/.exec(text) ?? [];
  return bracketed ?? plain ?? '';
};

// §4.1: turns a path as received into the one that the router knows.

/** Decodes nothing and joins no slashes, so that a path which a proxy may read in another way leads nowhere. */
export type CanonicalizePath = (path: string) => string;

/**
 * Removes the slash behind an MCP endpoint, and the path of BASE_URL: from the start, where the proxy in front leaves it, and from
 * well-known addresses, which begin at the host (RFC 8414 §3.1, RFC 9728 §3.1).
 */
export function createCanonicalizePath(
  baseUrl: string,
  hasEndpoint: (path: string) => boolean,
): CanonicalizePath {
  const basePath = new URL(baseUrl).pathname.replace(/\/$/, '');
  if (basePath === '') return removeSlash;

  return function canonicalizePath(path) {
    const literal = removeSlash(path);
    // If a proxy has removed the path of BASE_URL, the rest may begin with the same segment.
    if (hasEndpoint(literal)) return literal;
    const below = removeBasePath(path, basePath);
    // Proxies block /metrics by its public path, so it must have no second one.
    return below === undefined || below === METRICS ? literal : removeSlash(below);
  };
}

const METRICS = '/metrics';

/** The documents too, since clients append the path of the endpoint to theirs. */
const MCP_WITH_SLASH = /^(?:\/\.well-known\/oauth-protected-resource)?\/mcp\/(?:[^/]+\/)?$/;

const removeSlash: CanonicalizePath = (path) =>
  path.endsWith('/') && MCP_WITH_SLASH.test(path) ? path.slice(0, -1) : path;

const METADATA =
  /^\/\.well-known\/(?:oauth-protected-resource|oauth-authorization-server|openid-configuration)(?=\/)/;

/** Undefined if the path of BASE_URL is neither at the start nor behind the name of a document. */
function removeBasePath(path: string, basePath: string) {
  const [start = ''] = METADATA.exec(path) ?? [];
  const rest = path.slice(start.length);
  if (rest !== basePath && !rest.startsWith(`${basePath}/`)) return undefined;
  return start + rest.slice(basePath.length) || '/';
}
