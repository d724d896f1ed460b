// §14: requests to other servers, through a proxy where one is set: Node's own fetch knows none.
import type { Duplex } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { Fetch } from '../fetch-with-limits.ts';
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
  const { Client, EnvHttpProxyAgent, fetch: fetchThroughProxy } = await import('undici');
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

  async function connectThrough(
    proxy: string,
    target: string,
    signal: AbortSignal,
  ): Promise<Duplex> {
    const { origin, username, password } = new URL(proxy);
    const client = new Client(origin);
    try {
      const { statusCode, socket } = await client.connect({
        path: target,
        headers: { host: target, ...createProxyAuthorization(username, password) },
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

/** RFC 7617; the parts of a URL are percent-encoded. */
function createProxyAuthorization(
  username: string,
  password: string,
): Readonly<Record<string, string>> {
  if (username === '') return {};
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { 'proxy-authorization': `Basic ${Buffer.from(pair).toString('base64')}` };
}

// §14: connections to one server that is named in a file, kept open between requests; through a proxy where
// one is set.

interface ServerPoolOptions {
  /** PEM of the authorities that may have signed its certificate; undefined for the system's. */
  readonly ca: string | undefined;
  /** Milliseconds until a connection counts as failed, TLS included. */
  readonly connectTimeoutMs: number;
  readonly outbound: OutboundConfig;
}

/**
 * Of a server that does not say how long it keeps an idle connection: less than the 5 s after which uvicorn and others close
 * it without a word. A call that is sent just then fails, and one of a tool cannot be repeated. At 60 s, and 20 ms away, of
 * 300 calls sent within 50 ms of that time 198 failed; at 4 s none.
 */
const IDLE_MS = 4_000;
/** Of one that says so, by `Keep-Alive: timeout`. */
const MAX_IDLE_MS = 600_000;

/**
 * How long an answer may take is the caller's matter: a stream may stay silent for hours. Undici is loaded
 * here because few need it.
 */
export async function openServerPool(
  url: URL,
  { ca, connectTimeoutMs, outbound }: ServerPoolOptions,
): Promise<Dispatcher> {
  const { Pool, ProxyAgent } = await import('undici');
  const connect = { timeout: connectTimeoutMs, ...(ca !== undefined && { ca }) };
  const shared = {
    pipelining: 1,
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: IDLE_MS,
    keepAliveMaxTimeout: MAX_IDLE_MS,
  };
  const proxy = createProxyChoice(outbound)(url);
  if (proxy === undefined) return new Pool(url.origin, { ...shared, connect });
  // Plain http is asked for by its whole URL: most proxies let CONNECT reach port 443 only.
  const proxyTunnel = url.protocol === 'https:';
  return new ProxyAgent({ ...shared, uri: proxy, requestTls: connect, proxyTunnel });
}
