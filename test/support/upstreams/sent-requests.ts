// A request over a pool, and what its handler was told.
import { expect } from 'vitest';
import type {
  HttpPool,
  HttpRequest,
  ResponseHandler,
  SentRequest,
} from '../../../src/platform/http-client/http-pool.ts';

export interface Told extends ResponseHandler {
  readonly sent: SentRequest;
  status(): number | undefined;
  text(): string;
  error(): Error | undefined;
  /** Resolves to the body once the answer has ended. */
  ended(): Promise<string>;
  /** Resolves to why there is no answer. */
  failed(): Promise<Error>;
}

export function sendOver(
  pool: HttpPool,
  request: Partial<HttpRequest> = {},
  onData: (bytes: Buffer) => void = () => {},
): Told {
  let status: number | undefined;
  let text = '';
  let isEnded = false;
  let error: Error | undefined;
  const handler: ResponseHandler = {
    onStart(given) {
      status = given;
    },
    onData(bytes) {
      text += bytes.toString('latin1');
      onData(bytes);
    },
    onEnd() {
      if (isEnded) throw new Error('It ended twice.');
      isEnded = true;
    },
    onError(given) {
      if (isEnded || error !== undefined) throw new Error('It ended twice.');
      error = given;
    },
  };
  const sent = pool.send(
    { method: 'POST', path: '/mcp', headers: [], body: '{}', ...request },
    handler,
  );
  return Object.assign(handler, {
    sent,
    status: () => status,
    text: () => text,
    error: () => error,
    async ended() {
      await expect.poll(() => isEnded).toBe(true);
      return text;
    },
    async failed() {
      await expect.poll(() => error).toBeDefined();
      return error ?? new Error('It did not fail.');
    },
  });
}
