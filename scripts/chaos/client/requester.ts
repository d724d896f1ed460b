// Requests over kept-alive connections. Nothing is sent twice: every failure is seen.
import { Pool } from 'undici';

export interface ClientRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

export type Response = Answer | Failure;

export interface Answer {
  readonly kind: 'answer';
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

/** No answer. `hang` says that none came in time, otherwise the connection failed. */
export interface Failure {
  readonly kind: 'failure';
  readonly code: string;
  readonly isHang: boolean;
}

export interface Requester {
  send(request: ClientRequest): Promise<Response>;
  /** Calls under way never end: nobody looks at them any more. */
  close(): Promise<void>;
}

/** Far longer than any answer may take: nobody waits for it but a call that hangs. */
const HANG_MS = 15_000;

export interface RequesterOptions {
  readonly connections: number;
  /** Headers of each request, in addition to its own. */
  readonly headers?: Readonly<Record<string, string>>;
}

export function createRequester(url: string, options: RequesterOptions): Requester {
  const { connections, headers: common } = options;
  const pool = new Pool(url, {
    connections,
    pipelining: 1,
    headersTimeout: HANG_MS,
    bodyTimeout: HANG_MS,
    keepAliveTimeout: 30_000,
  });
  let isClosed = false;
  return {
    async send({ method, path, headers, body = null }) {
      try {
        const response = await pool.request({
          method,
          path,
          headers: { ...common, ...headers },
          body,
        });
        const text = await response.body.text();
        return { kind: 'answer', status: response.statusCode, headers: response.headers, text };
      } catch (error) {
        if (isClosed) return new Promise(() => {});
        const code = readCode(error);
        return { kind: 'failure', code, isHang: code.includes('TIMEOUT') };
      }
    },
    close() {
      isClosed = true;
      return pool.destroy();
    },
  };
}

function readCode(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return 'code' in error ? String(error.code) : error.message;
}
