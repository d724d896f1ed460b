// Requests over a connection that stays open, by node:http: no code of the gateway is on the client's side.
import { Agent, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import type { TestGateway, TestRequest } from '../../test/support/gateway/gateway.ts';

export interface Sender {
  readonly request: TestGateway['request'];
  close(): void;
}

/** Sends to a port of loopback what is meant for `baseUrl`. */
export function createSender(port: number, baseUrl: string): Sender {
  const agent = new Agent({ keepAlive: true });
  const { host } = new URL(baseUrl);
  return {
    async request({ method = 'GET', path, headers = {}, body }) {
      const payload = encode(body);
      const response = await new Promise<IncomingMessage>((resolve, reject) => {
        request(
          {
            ...{ agent, host: '127.0.0.1', port, method, path },
            headers: { host, ...payload?.headers, ...headers },
          },
          resolve,
        )
          .on('error', reject)
          .end(payload?.text);
      });
      const received = await text(response);
      return {
        status: response.statusCode ?? 0,
        headers: response.headers as Readonly<Record<string, string | undefined>>,
        text: received,
        get json() {
          return JSON.parse(received);
        },
      };
    },
    close: () => agent.destroy(),
  };
}

function encode(body: TestRequest['body']) {
  if (body === undefined) return undefined;
  const isForm = body instanceof URLSearchParams;
  const encoded = isForm ? body.toString() : JSON.stringify(body);
  return {
    text: encoded,
    headers: {
      'content-type': isForm ? 'application/x-www-form-urlencoded' : 'application/json',
      'content-length': Buffer.byteLength(encoded),
    },
  };
}
