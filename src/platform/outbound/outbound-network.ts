// §14: outbound requests, through a proxy if one is configured.

import { AsyncResource } from 'node:async_hooks';
import { type Duplex, Readable } from 'node:stream';
import { type Clock, systemClock } from '../clock.ts';
import type { Fetch, FetchInit, FetchResponse } from '../fetch-with-limits.ts';
import type { Destination } from '../http-client/connect.ts';
import { decodeBody } from '../http-client/content-coding.ts';
import { HttpPool, PoolClosed, type ResponseHandler } from '../http-client/http-pool.ts';
import {
  connectThrough,
  createProxyAuthorization,
  createProxyChoice,
  type OutboundConfig,
} from './proxy-choice.ts';

export interface OutboundNetwork {
  /** Reaches configured hosts: the provider and its key set. */
  readonly fetch: Fetch;
  /** Reaches hosts named by client ID metadata documents. */
  readonly openTunnel: OpenTunnel;
  /** Fails in-flight and later requests; open tunnels belong to their owners. */
  close(): void;
}

/**
 * Opens a connection through the proxy, which resolves the host's name; undefined for hosts to reach directly. Rejects if the proxy
 * refuses.
 */
export type OpenTunnel = (
  host: string,
  port: number,
  signal: AbortSignal,
) => Promise<Duplex> | undefined;

// §14: `fetch` on top of the gateway's own HTTP client: Node's own takes 30 ms to load, and supports proxies only from Node 24 on.
// No redirects, no cookies.

/** Shorter than most exchanges' timeouts, so that callers learn that a token was never sent. */
const CONNECT_TIMEOUT_MS = 8_000;

/** Default request headers. Some hosts refuse requests without a user agent. */
const DEFAULT_HEADERS = [
  ['User-Agent', 'postern'],
  ['Accept', '*/*'],
  ['Accept-Encoding', 'identity'],
] as const;

export function openOutboundNetwork({
  outbound,
  keepsConnections = true,
}: OutboundSettings): OutboundNetwork {
  const chooseProxy = createProxyChoice(outbound);
  /** Keyed by origin. */
  const pools = new Map<string, HttpPool>();
  // Opens the pool outside any async context, since its requests belong to many traces.
  const opener = new AsyncResource('Fetch');
  let isClosed = false;

  function openPool(url: URL): HttpPool {
    // Most origins come from settings; others come from servers, repeatedly.
    for (const [origin, pool] of pools) if (pool.isEmpty()) pools.delete(origin);
    const pool = opener.runInAsyncScope(openServerPool, undefined, url, {
      outbound,
      keepsConnections,
      // Uses the network's clock, as exchanges do for their timeouts.
      clock: systemClock,
      ca: undefined,
      connectTimeoutMs: CONNECT_TIMEOUT_MS,
    });
    pools.set(url.origin, pool);
    return pool;
  }

  return {
    async fetch(address, init) {
      if (isClosed) throw new PoolClosed('the gateway no longer sends requests');
      const url = new URL(address);
      if (!/^https?:$/.test(url.protocol)) throw new Error('its address is neither http nor https');
      if (url.username + url.password !== '') throw new Error('its address has a user');
      init.signal?.throwIfAborted();
      return exchange(pools.get(url.origin) ?? openPool(url), url, init);
    },
    openTunnel(host, port, signal) {
      const proxy = chooseProxy(new URL(`https://${host}:${port}`));
      return proxy === undefined ? undefined : connectThrough(proxy, `${host}:${port}`, signal);
    },
    close() {
      isClosed = true;
      for (const pool of pools.values()) pool.close();
    },
  };
}

/** One request and its response. */
function exchange(
  pool: HttpPool,
  url: URL,
  { method = 'GET', headers = {}, body: content, signal }: FetchInit,
): Promise<FetchResponse> {
  const names = new Set(Object.keys(headers).map((name) => name.toLowerCase()));
  const defaults = DEFAULT_HEADERS.filter(([name]) => !names.has(name.toLowerCase()));

  return new Promise((resolve, reject) => {
    const body = new Readable({
      read: () => sent.resume(handler),
      destroy(error, done) {
        signal?.removeEventListener('abort', end);
        sent.abort(handler);
        done(error);
      },
    });
    // The body may fail before it is read; the reader then gets the error.
    body.on('error', () => {});
    const handler: ResponseHandler = {
      onStart(status, received) {
        const get = (name: string) => received[name.toLowerCase()]?.toString() ?? null;
        resolve({
          status,
          headers: { get },
          body: {
            [Symbol.asyncIterator]: () => decodeBody(body, get('content-encoding') ?? ''),
            cancel: async () => void body.destroy(),
          },
        });
      },
      onData(bytes) {
        if (!body.push(bytes)) sent.pause(handler);
      },
      onEnd: () => void body.push(null),
      onError: fail,
    };
    function fail(error: Error) {
      reject(error);
      body.destroy(error);
    }
    const end = () => fail(signal?.reason);
    const sent = pool.send(
      {
        method,
        path: url.pathname + url.search,
        // Trimmed, as `fetch` does, since a secret from a file may end in a line break.
        headers: [
          ...Object.entries(headers).map(([name, value]) => [
            name,
            value.replace(/^[\t\n\r ]+|[\t\n\r ]+$/g, ''),
          ]),
          ...defaults,
        ],
        // Some servers refuse an empty POST without Content-Length.
        body: content ?? (method === 'POST' ? '' : null),
      },
      handler,
    );
    signal?.addEventListener('abort', end);
  });
}

// §14: keep-alive connections to one configured server, through a proxy if one is configured.

interface OutboundSettings {
  readonly outbound: OutboundConfig;
  /** If false, each request has its own connection. Default: true. */
  readonly keepsConnections?: boolean;
}

interface ServerPoolSettings extends OutboundSettings {
  /** PEM of trusted certificate authorities; undefined for the system's. */
  readonly ca: string | undefined;
  /** Connect timeout in milliseconds, including TLS. */
  readonly connectTimeoutMs: number;
  readonly clock: Clock;
}

export function openServerPool(url: URL, settings: ServerPoolSettings): HttpPool {
  const { clock, keepsConnections = true, outbound, connectTimeoutMs } = settings;
  const proxy = createProxyChoice(outbound)(url);
  const server = toDestination(url, settings.ca, connectTimeoutMs);
  const openPool = (destination: Destination, targetPrefix = '', proxyAuthorization?: string) =>
    new HttpPool({
      host: url.host,
      destination,
      targetPrefix,
      proxyAuthorization,
      keepsConnections,
      clock,
    });
  if (proxy === undefined) return openPool(server);
  if (server.isSecure) {
    const openTunnel = (signal: AbortSignal) =>
      connectThrough(proxy, `${url.hostname}:${server.port}`, signal);
    return openPool({ ...server, openTunnel });
  }
  // Plain http is sent with the absolute URL, since most proxies allow CONNECT to port 443 only.
  const ofProxy = toDestination(new URL(proxy), undefined, connectTimeoutMs);
  const authorization = createProxyAuthorization(proxy);
  return openPool({ ...ofProxy, isProxy: true }, url.origin, authorization);
}

function toDestination(
  { protocol, hostname, port }: URL,
  ca: string | undefined,
  connectTimeoutMs: number,
): Destination {
  const isSecure = protocol === 'https:';
  return {
    host: hostname,
    port: Number(port) || (isSecure ? 443 : 80),
    isSecure,
    ca,
    timeoutMs: connectTimeoutMs,
    openTunnel: undefined,
    isProxy: false,
  };
}
