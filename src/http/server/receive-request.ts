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

export function receiveRequest(
  req: IncomingMessage,
  res: ServerResponse,
  connection: { readonly receivedAt: number; readonly address: string },
  ways: { readonly findClientIp: FindClientIp; readonly canonicalizePath: CanonicalizePath },
): ReceivedRequest {
  const { authority, path, query } = parseRequestTarget(req.url ?? '/');
  let signal: CancelSignal | undefined;
  return {
    request: {
      method: req.method ?? 'GET',
      path: ways.canonicalizePath(path),
      query,
      headers: req.headers,
      clientIp: ways.findClientIp({
        forwardedFor: getHeader(req, 'x-forwarded-for'),
        realIp: getHeader(req, 'x-real-ip'),
        socket: connection.address,
      }),
      signal: () => {
        signal ??= createHangUpSignal(res);
        return signal;
      },
    },
    authority,
    body: openBody(req),
    receivedAt: connection.receivedAt,
  };
}

interface RequestTarget {
  readonly authority: string | undefined;
  readonly path: string;
  readonly query: string;
}

const ABSOLUTE = /^https?:\/\/([^/?#]*)(.*)$/i;

/** RFC 9112 §3.2: the request target, taken apart and not decoded. */
function parseRequestTarget(target: string): RequestTarget {
  const [, authority, rest = target] = target.startsWith('/') ? [] : (ABSOLUTE.exec(target) ?? []);
  const mark = rest.indexOf('?');
  const path = mark === -1 ? rest : rest.slice(0, mark);
  return {
    authority,
    path: path === '' ? '/' : path,
    query: mark === -1 ? '' : rest.slice(mark + 1),
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

/** Aborted when the connection closes before the reply was sent. */
function createHangUpSignal(res: ServerResponse): CancelSignal {
  const cancellation = new Cancellation();
  runWhenClosed(res, () => {
    if (!res.writableFinished) cancellation.abort();
  });
  return cancellation;
}

// §8.2, `TRUST_PROXY`: the caller's address.

/** Sources of the caller's address: headers, which anybody can write, and the socket. */
interface AddressSources {
  readonly forwardedFor: string | undefined;
  readonly realIp: string | undefined;
  /** The address of the connection, in its one spelling; or `unknown`. */
  readonly socket: string;
}

type FindClientIp = (sources: AddressSources) => string;

/** An address in its one spelling, or this; text of a header never becomes part of a key. */
const UNKNOWN = 'unknown';

/** Chosen once by `TRUST_PROXY`. */
export function createFindClientIp(trust: TrustProxy): FindClientIp {
  switch (trust.kind) {
    case 'all':
      return ({ forwardedFor, realIp, socket }) => {
        const said = listEntries(forwardedFor)[0] ?? (realIp?.trim() || undefined);
        // That of the connection is in its one spelling already.
        return said === undefined ? socket : toAddress(said);
      };
    case 'none':
      return ({ socket }) => socket;
    case 'hops':
      // With fewer entries than proxies somebody came past them: only the socket is certain.
      return ({ forwardedFor, socket }) => {
        const said = listEntries(forwardedFor).at(-trust.hops);
        return said === undefined ? socket : toAddress(said);
      };
    case 'networks':
      return ({ forwardedFor, socket }) =>
        findFirstUntrusted([...listEntries(forwardedFor), socket], trust.trusts);
  }
}

/** Nobody has so many proxies, and anybody can write a long list. */
const MAX_HOPS = 32;

/** From the right, the first that is no trusted proxy; all trusted: the leftmost. */
function findFirstUntrusted(hops: readonly string[], trusts: (address: string) => boolean): string {
  let last = UNKNOWN;
  for (let at = hops.length - 1; at >= 0 && at >= hops.length - MAX_HOPS; at -= 1) {
    last = toAddress(hops[at]);
    if (!trusts(last)) break;
  }
  return last;
}

const listEntries = (forwardedFor: string | undefined): readonly string[] =>
  forwardedFor?.trim() ? forwardedFor.split(',').map((entry) => entry.trim()) : [];

/** An address that anybody may have written; or `unknown`. */
export function toAddress(text: string | undefined): string {
  if (text === undefined) return UNKNOWN;
  return canonicalizeAddress(text) ?? canonicalizeAddress(removePort(text)) ?? UNKNOWN;
}

/** `ip:port` and `[v6]:port` lose the port, `[v6]` its brackets. */
const removePort = (text: string): string => {
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
function removeBasePath(path: string, basePath: string): string | undefined {
  const [start = ''] = METADATA.exec(path) ?? [];
  const rest = path.slice(start.length);
  if (rest !== basePath && !rest.startsWith(`${basePath}/`)) return undefined;
  return start + rest.slice(basePath.length) || '/';
}
