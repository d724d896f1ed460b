// §4.6, §24: one request to a host that anybody could have named.
import type { IncomingHttpHeaders } from 'node:http';
import { request } from 'node:https';
import { decodeBody } from '../http-client/content-coding.ts';
import { openPublicConnection } from './public-connection.ts';
import type { Network } from './public-network.ts';

export interface PublicRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Called when the request begins: what failed before has reached nobody. */
  onConnected?(): void;
}

export interface PublicResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** The caller's to read, and to bound. */
  readonly body: AsyncIterable<Uint8Array>;
}

/**
 * Over a connection of its own, which the signal closes. Redirects are answers like any other.
 *
 * @throws HostNotPublic, else what went wrong.
 */
export async function requestPublicHost(
  url: URL,
  { method = 'GET', headers, body, onConnected }: PublicRequest,
  network: Network,
  signal: AbortSignal,
): Promise<PublicResponse> {
  const socket = await openPublicConnection(
    url.hostname,
    Number(url.port) || HTTPS_PORT,
    network,
    signal,
  );
  onConnected?.();
  return new Promise((resolve, reject) => {
    request({
      createConnection: () => socket,
      method,
      path: url.pathname + url.search,
      headers: {
        Host: url.host,
        Accept: 'application/json',
        'Accept-Encoding': 'identity',
        // Some hosts turn away whoever does not say what they are.
        'User-Agent': 'postern',
        ...headers,
        ...(body !== undefined && { 'Content-Length': String(Buffer.byteLength(body)) }),
      },
    })
      .once('response', (response) => {
        const { statusCode: status = 0, headers: received } = response;
        const coding = received['content-encoding'] ?? '';
        resolve({ status, headers: received, body: decodeBody(response, coding) });
      })
      .on('error', reject)
      .end(body);
  });
}

const HTTPS_PORT = 443;
