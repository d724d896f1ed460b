// Decisions 10: the way out of the process, by a proxy where one is set: Node's own fetch knows none.
import type { Duplex } from 'node:stream';
import type { ProxySettings } from '../config/config.ts';
import type { Fetch } from '../fetch-with-limits.ts';
import { createProxyRule } from './proxy-rule.ts';

export interface Outbound {
  /** For what the settings name: the provider and its key set. */
  readonly fetch: Fetch;
  readonly tunnel: Tunnel;
  close(): Promise<void>;
}

/**
 * A connection to the host through the proxy, which resolves its name; undefined where the host is
 * to be reached directly. The promise is rejected when the proxy refuses.
 */
export type Tunnel = (
  host: string,
  port: number,
  signal: AbortSignal,
) => Promise<Duplex> | undefined;

export async function openOutbound(settings: ProxySettings): Promise<Outbound> {
  const { httpProxy, httpsProxy } = settings;
  // Undici costs memory and time to load, and few need it.
  return httpProxy === undefined && httpsProxy === undefined
    ? { fetch: globalThis.fetch, tunnel: () => undefined, close: async () => {} }
    : openProxied(settings);
}

async function openProxied(settings: ProxySettings): Promise<Outbound> {
  const { Client, EnvHttpProxyAgent, fetch: fetchBy } = await import('undici');
  const proxyOf = createProxyRule(settings);
  // An empty text, because it would read the environment for what is undefined. What goes through
  // it was judged by the rule already.
  const dispatcher = new EnvHttpProxyAgent({
    httpProxy: settings.httpProxy ?? '',
    httpsProxy: settings.httpsProxy ?? '',
    noProxy: '',
    // Plain http is asked for by its whole URL: most proxies let CONNECT reach port 443 only.
    proxyTunnel: false,
  });

  async function connectBy(proxy: string, target: string, signal: AbortSignal): Promise<Duplex> {
    const { origin, username, password } = new URL(proxy);
    const client = new Client(origin);
    try {
      const { statusCode, socket } = await client.connect({
        path: target,
        headers: { host: target, ...authorization(username, password) },
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
      proxyOf(new URL(url)) === undefined
        ? globalThis.fetch(url, init)
        : fetchBy(url, { ...init, dispatcher }),
    tunnel(host, port, signal) {
      const proxy = proxyOf(new URL(`https://${host}:${port}`));
      return proxy === undefined ? undefined : connectBy(proxy, `${host}:${port}`, signal);
    },
    close: () => dispatcher.destroy(),
  };
}

/** RFC 7617; the parts of a URL are percent-encoded. */
function authorization(username: string, password: string): Readonly<Record<string, string>> {
  if (username === '') return {};
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { 'proxy-authorization': `Basic ${Buffer.from(pair).toString('base64')}` };
}
