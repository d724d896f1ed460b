// §14: requests to other servers, through a proxy where one is set.

import { AsyncResource } from 'node:async_hooks';
import { type Duplex, Readable } from 'node:stream';
import { type Clock, systemClock } from '../clock.ts';
import type { Fetch, FetchInit, FetchResponse } from '../fetch-with-limits.ts';
import type { Destination } from '../http-client/connect.ts';
import type { ResponseHandler } from '../http-client/connection.ts';
import { decodeBody } from '../http-client/content-coding.ts';
import { HttpPool, PoolClosed } from '../http-client/http-pool.ts';
import {
  connectThrough,
  createProxyAuthorization,
  createProxyChoice,
  type OutboundConfig,
} from './proxy-choice.ts';

export interface OutboundNetwork {
  /** For what the settings name: the provider and its key set. */
  readonly fetch: Fetch;
  /** For the hosts that client ID metadata documents name. */
  readonly openTunnel: OpenTunnel;
  /** Ends requests that are under way; a tunnel is its owner's. */
  close(): void;
}

/**
 * A connection to the host through the proxy, which resolves its name; undefined where the host is
 * to be reached directly. The promise is rejected when the proxy refuses.
 */
export type OpenTunnel = (
  host: string,
  port: number,
  signal: AbortSignal,
) => Promise<Duplex> | undefined;

export function openOutboundNetwork(options: OutboundSettings): OutboundNetwork {
  const chooseProxy = createProxyChoice(options.outbound);
  const { fetch, close } = openFetch(options);
  return {
    fetch,
    openTunnel(host, port, signal) {
      const proxy = chooseProxy(new URL(`https://${host}:${port}`));
      return proxy === undefined ? undefined : connectThrough(proxy, `${host}:${port}`, signal);
    },
    close,
  };
}

// §14: what `fetch` does, over the gateway's own client for HTTP. Node's takes 30 ms of a start to load, and knows no proxy
// before Node 24. It follows no redirect, and has no cookies.

/** Less than the limits of most exchanges: whoever sent a token wants to know that it never arrived. */
const CONNECT_TIMEOUT_MS = 8_000;

/** Headers of each request, unless it says otherwise. Some hosts turn away whoever does not say what they are. */
const DEFAULT_HEADERS = [
  ['User-Agent', 'postern'],
  ['Accept', '*/*'],
  ['Accept-Encoding', 'identity'],
] as const;

export function openFetch({ outbound, keepsConnections = true }: OutboundSettings) {
  /** Keyed by origin. */
  const pools = new Map<string, HttpPool>();
  // The first to open a connection is one request of many: the others are no part of it.
  const opener = new AsyncResource('Fetch');
  let isClosed = false;

  function openPool(url: URL): HttpPool {
    // Most origins are named by the settings, others by servers, again and again.
    for (const [origin, pool] of pools) if (pool.isEmpty()) pools.delete(origin);
    const pool = opener.runInAsyncScope(openServerPool, undefined, url, {
      outbound,
      keepsConnections,
      // As the limits of an exchange, by the time of the network.
      clock: systemClock,
      ca: undefined,
      connectTimeoutMs: CONNECT_TIMEOUT_MS,
    });
    pools.set(url.origin, pool);
    return pool;
  }

  return {
    async fetch(address: string, init: FetchInit) {
      if (isClosed) throw new PoolClosed('the gateway asks nobody any more');
      const url = new URL(address);
      if (!/^https?:$/.test(url.protocol)) throw new Error('its address is neither http nor https');
      if (url.username + url.password !== '') throw new Error('its address has a user');
      init.signal?.throwIfAborted();
      return exchange(pools.get(url.origin) ?? openPool(url), url, init);
    },
    /** Fails what is under way, and whatever is asked for later. */
    close() {
      isClosed = true;
      for (const pool of pools.values()) pool.close();
    },
  };
}

/** One request and its answer. */
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
    // It may fail before anybody reads it: whoever does is told then.
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
      onError(error) {
        reject(error);
        body.destroy(error);
      },
    };
    const end = () => handler.onError(signal?.reason);
    const sent = pool.send(
      {
        method,
        path: url.pathname + url.search,
        // Trimmed as `fetch` does: a secret may have come from a file, with its line end.
        headers: [
          ...Object.entries(headers).map(([name, value]) => [
            name,
            value.replace(/^[\t\n\r ]+|[\t\n\r ]+$/g, ''),
          ]),
          ...defaults,
        ],
        // Some servers refuse a POST that does not say that it has no body.
        body: content ?? (method === 'POST' ? '' : null),
      },
      handler,
    );
    signal?.addEventListener('abort', end);
  });
}

// §14: connections to one server that is named in a file or a setting, kept open between requests; through a proxy where one is
// set.

interface OutboundSettings {
  readonly outbound: OutboundConfig;
  /** False where each request is to have a connection of its own; true unless given. */
  readonly keepsConnections?: boolean;
}

interface ServerPoolSettings extends OutboundSettings {
  /** PEM of the authorities that may have signed its certificate; undefined for the system's. */
  readonly ca: string | undefined;
  /** Milliseconds until a connection counts as failed, TLS included. */
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
  // Plain http is asked for by its whole URL: most proxies let CONNECT reach port 443 only.
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
