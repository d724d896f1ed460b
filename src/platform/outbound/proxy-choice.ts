// §14: chooses the proxy for a URL. NO_PROXY works as in curl and Go.
import { BlockList, isIP } from 'node:net';
import type { Duplex } from 'node:stream';
import { isOnThisMachine, normalizeHost } from '../address.ts';
import { ConnectTimeout, ProxyError, toProxyError } from '../http-client/connect.ts';

/** Proxy settings under their conventional names. */
export interface OutboundConfig {
  /** The proxy for http URLs. May contain a password, like `httpsProxy`. */
  readonly httpProxy: string | undefined;
  readonly httpsProxy: string | undefined;
  /** Hosts to reach directly, as written in the setting. */
  readonly noProxy: readonly string[];
}

export function createProxyChoice({ httpProxy, httpsProxy, noProxy }: OutboundConfig) {
  const exemptions = [isOnThisMachine, ...noProxy.map(parseExemption)];

  /** URL of the proxy, or undefined to connect directly. */
  return function chooseProxy({ protocol, hostname, port: writtenPort }: URL): string | undefined {
    const isHttps = protocol === 'https:';
    const host = normalizeHost(hostname);
    const port = Number(writtenPort) || (isHttps ? 443 : 80);
    if (exemptions.some((isExempt) => isExempt(host, port))) return undefined;
    return isHttps ? httpsProxy : httpProxy;
  };
}

/** Parses an entry of NO_PROXY: `*`, a host, an address or a network, with an optional port. */
function parseExemption(entry: string): (host: string, port: number) => boolean {
  if (entry === '*') return () => true;
  const [, writtenHost = entry, writtenPort] = isIP(entry)
    ? []
    : (/^(.+):(\d+)$/.exec(entry) ?? []);
  const matchesHost = parseHostPattern(normalizeHost(writtenHost));
  return (host, port) =>
    (writtenPort === undefined || Number(writtenPort) === port) && matchesHost(host);
}

function parseHostPattern(pattern: string): (host: string) => boolean {
  if (/^\*?\./.test(pattern)) {
    const parent = pattern.replace(/^\*?\./, '');
    return (host) => host !== parent && isSameOrBelow(host, parent);
  }
  const [address = '', prefix] = pattern.split('/');
  const family = isIP(address);
  if (family === 0) return (host) => isSameOrBelow(host, pattern);
  const bits = family === 4 ? 32 : 128;
  if (prefix !== undefined && !(/^\d{1,3}$/.test(prefix) && Number(prefix) <= bits))
    return () => false;
  const network = new BlockList();
  network.addSubnet(address, Number(prefix ?? bits), family === 4 ? 'ipv4' : 'ipv6');
  return (host) => isIP(host) !== 0 && network.check(host, isIP(host) === 4 ? 'ipv4' : 'ipv6');
}

const isSameOrBelow = (host: string, parent: string) =>
  host === parent || host.endsWith(`.${parent}`);

// §14: tunnels TLS through a proxy (CONNECT, RFC 9110 §9.3.6).

/** The same value as for other connections (http-client/connect.ts). */
const KEEP_ALIVE_MS = 60_000;

/** Opens a connection to `host:port` through the proxy. */
export async function connectThrough(
  proxy: string,
  target: string,
  signal: AbortSignal,
): Promise<Duplex> {
  const { protocol, hostname, port } = new URL(proxy);
  // Loaded on demand: few deployments use a proxy, and the module is slow to load (http/server/server.ts).
  const { request } =
    protocol === 'https:' ? await import('node:https') : await import('node:http');
  signal.throwIfAborted();
  const host = normalizeHost(hostname);
  const authorization = createProxyAuthorization(proxy);
  return new Promise((resolve, reject) => {
    const asking = request({
      method: 'CONNECT',
      host,
      // By default, Node takes the TLS server name from the Host header. Server names are never addresses (RFC 6066 §3).
      servername: isIP(host) === 0 ? host : '',
      port,
      path: target,
      headers: {
        host: target,
        connection: 'keep-alive',
        ...(authorization !== undefined && { 'proxy-authorization': authorization }),
      },
      agent: false,
    });
    // The `signal` option would also destroy the socket after it was handed to the caller.
    const end = () => asking.destroy(signal.reason);
    signal.addEventListener('abort', end);
    asking
      .once('connect', ({ statusCode }, socket, begun) => {
        signal.removeEventListener('abort', end);
        if (statusCode !== undefined && statusCode >= 200 && statusCode < 300) {
          if (begun.length > 0) socket.unshift(begun);
          resolve(socket.setKeepAlive(true, KEEP_ALIVE_MS));
          return;
        }
        socket.on('error', () => {}).destroy();
        const words = `the proxy answered ${statusCode} to CONNECT ${target}`;
        reject(new ProxyError('ERR_PROXY_REFUSED', words));
      })
      .on('error', (error) => {
        signal.removeEventListener('abort', end);
        const isGivenUp = signal.aborted && !(error instanceof ConnectTimeout);
        reject(isGivenUp ? error : toProxyError(error));
      })
      .end();
  });
}

/** RFC 7617: made from percent-encoded user info. Undefined if the proxy URL has none. */
export function createProxyAuthorization(proxy: string): string | undefined {
  const { username, password } = new URL(proxy);
  if (username === '') return undefined;
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return `Basic ${Buffer.from(pair).toString('base64')}`;
}
