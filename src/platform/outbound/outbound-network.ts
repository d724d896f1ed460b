// §14: requests to other servers, through a proxy where one is set: Node's own fetch knows none.
import type { Duplex } from 'node:stream';
import type { Clock } from '../clock.ts';
import type { Fetch } from '../fetch-with-limits.ts';
import type { Destination } from '../http-client/connect.ts';
import { HttpPool } from '../http-client/http-pool.ts';
import { createProxyChoice, type OutboundConfig } from './proxy-choice.ts';

export interface OutboundNetwork {
  /** For what the settings name: the provider and its key set. */
  readonly fetch: Fetch;
  /** For the hosts that client ID metadata documents name. */
  readonly openTunnel: OpenTunnel;
  close(): Promise<void>;
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

export async function openOutboundNetwork(settings: OutboundConfig): Promise<OutboundNetwork> {
  const { httpProxy, httpsProxy } = settings;
  // Undici costs memory and time to load, and few need it.
  return httpProxy === undefined && httpsProxy === undefined
    ? { fetch: globalThis.fetch, openTunnel: () => undefined, close: async () => {} }
    : openProxiedNetwork(settings);
}

async function openProxiedNetwork(settings: OutboundConfig): Promise<OutboundNetwork> {
  const { EnvHttpProxyAgent, fetch: fetchThroughProxy } = await import('undici');
  const chooseProxy = createProxyChoice(settings);
  // Empty texts, because it would read the environment for what is undefined. chooseProxy has already
  // decided what goes through it.
  const dispatcher = new EnvHttpProxyAgent({
    httpProxy: settings.httpProxy ?? '',
    httpsProxy: settings.httpsProxy ?? '',
    noProxy: '',
    // Plain http is asked for by its whole URL: most proxies let CONNECT reach port 443 only.
    proxyTunnel: false,
  });

  return {
    fetch: (url, init) =>
      chooseProxy(new URL(url)) === undefined
        ? globalThis.fetch(url, init)
        : fetchThroughProxy(url, { ...init, dispatcher }),
    openTunnel(host, port, signal) {
      const proxy = chooseProxy(new URL(`https://${host}:${port}`));
      return proxy === undefined ? undefined : connectThrough(proxy, `${host}:${port}`, signal);
    },
    close: () => dispatcher.destroy(),
  };
}

/** A connection to `host:port` through the proxy. */
async function connectThrough(proxy: string, target: string, signal: AbortSignal): Promise<Duplex> {
  const { Client } = await import('undici');
  const { origin } = new URL(proxy);
  const authorization = createProxyAuthorization(proxy);
  const client = new Client(origin);
  try {
    const { statusCode, socket } = await client.connect({
      path: target,
      headers: {
        host: target,
        ...(authorization !== undefined && { 'proxy-authorization': authorization }),
      },
      signal,
    });
    if (statusCode === 200) return socket;
    socket.on('error', () => {}).destroy();
    throw new Error(`the proxy answered ${statusCode} to CONNECT ${target}`);
  } finally {
    // The socket is no longer its own.
    await client.destroy();
  }
}

/** RFC 7617; the parts of a URL are percent-encoded. Undefined where the proxy wants none. */
function createProxyAuthorization(proxy: string): string | undefined {
  const { username, password } = new URL(proxy);
  if (username === '') return undefined;
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return `Basic ${Buffer.from(pair).toString('base64')}`;
}

// §14: connections to one server that is named in a file, kept open between requests; through a proxy where
// one is set.

interface ServerPoolOptions {
  /** PEM of the authorities that may have signed its certificate; undefined for the system's. */
  readonly ca: string | undefined;
  /** Milliseconds until a connection counts as failed, TLS included. */
  readonly connectTimeoutMs: number;
  readonly outbound: OutboundConfig;
  readonly clock: Clock;
}

export function openServerPool(url: URL, options: ServerPoolOptions): HttpPool {
  const { clock, outbound } = options;
  const proxy = createProxyChoice(outbound)(url);
  const server = toDestination(url, options);
  const shared = { host: url.host, clock };
  const direct = { ...shared, targetPrefix: '', proxyAuthorization: undefined };
  if (proxy === undefined) return new HttpPool({ ...direct, destination: server });
  if (server.isSecure) {
    const openTunnel = (signal: AbortSignal) =>
      connectThrough(proxy, `${url.hostname}:${server.port}`, signal);
    return new HttpPool({ ...direct, destination: { ...server, openTunnel } });
  }
  // Plain http is asked for by its whole URL: most proxies let CONNECT reach port 443 only.
  return new HttpPool({
    ...shared,
    destination: toDestination(new URL(proxy), { ...options, ca: undefined }),
    targetPrefix: url.origin,
    proxyAuthorization: createProxyAuthorization(proxy),
  });
}

function toDestination(
  { protocol, hostname, port }: URL,
  { ca, connectTimeoutMs }: ServerPoolOptions,
): Destination {
  const isSecure = protocol === 'https:';
  return {
    host: hostname,
    port: Number(port) || (isSecure ? 443 : 80),
    isSecure,
    ca,
    timeoutMs: connectTimeoutMs,
    openTunnel: undefined,
  };
}
