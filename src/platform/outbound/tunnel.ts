// §14: through a proxy to a server with TLS (CONNECT, RFC 9110 §9.3.6).
import type { Duplex } from 'node:stream';
import { normalizeHost } from '../address.ts';
import { getErrorCode } from '../error-code.ts';

/** The proxy ended the connection in place of an answer. */
export class ProxyClosed extends Error {
  override readonly name = 'ProxyClosed';
  readonly code = 'ERR_PROXY_CLOSED';
}

/** A connection to `host:port` through the proxy. */
export async function connectThrough(
  proxy: string,
  target: string,
  signal: AbortSignal,
): Promise<Duplex> {
  const { protocol, hostname, port } = new URL(proxy);
  // Few have a proxy, and Node takes long to load what comes with it (edge/server.ts).
  const { request } =
    protocol === 'https:' ? await import('node:https') : await import('node:http');
  signal.throwIfAborted();
  const authorization = createProxyAuthorization(proxy);
  return new Promise((resolve, reject) => {
    const asking = request({
      method: 'CONNECT',
      host: normalizeHost(hostname),
      port,
      path: target,
      headers: {
        host: target,
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
        if (statusCode === 200) {
          if (begun.length > 0) socket.unshift(begun);
          resolve(socket);
          return;
        }
        socket.on('error', () => {}).destroy();
        reject(new Error(`the proxy answered ${statusCode} to CONNECT ${target}`));
      })
      .on('error', (error) => {
        signal.removeEventListener('abort', end);
        const isClosed = getErrorCode(error) === 'ECONNRESET';
        reject(isClosed ? new ProxyClosed('the proxy closed the connection') : error);
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
