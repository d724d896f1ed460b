// §14: connections to one server that is named in a file, kept open between requests; through a proxy where
// one is set.
import type { Dispatcher } from 'undici';
import type { OutboundConfig } from './proxy-choice.ts';
import { createProxyChoice } from './proxy-choice.ts';

export interface ServerPoolOptions {
  /** PEM of the authorities that may have signed its certificate; undefined for the system's. */
  readonly ca: string | undefined;
  /** Milliseconds until a connection counts as failed, TLS included. */
  readonly connectTimeoutMs: number;
  readonly outbound: OutboundConfig;
}

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
  const shared = { pipelining: 1, headersTimeout: 0, bodyTimeout: 0 };
  const proxy = createProxyChoice(outbound)(url);
  if (proxy === undefined) return new Pool(url.origin, { ...shared, connect });
  // Plain http is asked for by its whole URL: most proxies let CONNECT reach port 443 only.
  const proxyTunnel = url.protocol === 'https:';
  return new ProxyAgent({ ...shared, uri: proxy, requestTls: connect, proxyTunnel });
}
