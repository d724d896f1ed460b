// §14: connections to one server that is named in a file or a setting, kept open between requests; through a proxy where one is
// set.
import type { Clock } from '../clock.ts';
import type { Destination } from '../http-client/connect.ts';
import { HttpPool } from '../http-client/http-pool.ts';
import { createProxyChoice, type OutboundConfig } from './proxy-choice.ts';
import { connectThrough, createProxyAuthorization } from './tunnel.ts';

export interface ServerPoolOptions {
  /** PEM of the authorities that may have signed its certificate; undefined for the system's. */
  readonly ca: string | undefined;
  /** Milliseconds until a connection counts as failed, TLS included. */
  readonly connectTimeoutMs: number;
  /** False where each request is to have a connection of its own; true unless given. */
  readonly keepsConnections?: boolean;
  readonly outbound: OutboundConfig;
  readonly clock: Clock;
}

export function openServerPool(url: URL, options: ServerPoolOptions): HttpPool {
  const { clock, keepsConnections = true, outbound } = options;
  const proxy = createProxyChoice(outbound)(url);
  const server = toDestination(url, options);
  const shared = { host: url.host, keepsConnections, clock };
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
    destination: { ...toDestination(new URL(proxy), { ...options, ca: undefined }), isProxy: true },
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
    isProxy: false,
  };
}
