// §14: through a proxy to a server with TLS (CONNECT, RFC 9110 §9.3.6).
import { isIP } from 'node:net';
import type { Duplex } from 'node:stream';
import { normalizeHost } from '../address.ts';
import { ConnectTimeout } from '../http-client/connect.ts';
import { ProxyError, toProxyError } from '../http-client/proxy-error.ts';

/** As for other connections (http-client/connect.ts). */
const KEEP_ALIVE_MS = 60_000;

/** A connection to `host:port` through the proxy. */
export async function connectThrough(
  proxy: string,
  target: string,
  signal: AbortSignal,
): Promise<Duplex> {
  const { protocol, hostname, port } = new URL(proxy);
  // Few have a proxy, and Node takes long to load what comes with it (http/server/server.ts).
  const { request } =
    protocol === 'https:' ? await import('node:https') : await import('node:http');
  signal.throwIfAborted();
  const host = normalizeHost(hostname);
  const authorization = createProxyAuthorization(proxy);
  return new Promise((resolve, reject) => {
    const asking = request({
      method: 'CONNECT',
      host,
      // Else it would have to be the server's: Node takes it from the Host header. TLS names no addresses (RFC 6066 §3).
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
    // Not by an option: it would also end the socket once it is the caller's.
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

/** RFC 7617; the parts of a URL are percent-encoded. Undefined where the proxy wants none. */
export function createProxyAuthorization(proxy: string): string | undefined {
  const { username, password } = new URL(proxy);
  if (username === '') return undefined;
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return `Basic ${Buffer.from(pair).toString('base64')}`;
}
