// Refusals that say the truth while something is down. Everything else is a wrong answer.
import type { Answer, Response } from './requester.ts';

export type Refusal =
  /** The store is unavailable. */
  | 'store'
  /** The process has more to do than it can. */
  | 'overload'
  /** The address has used up its limit. */
  | 'limit'
  /** The provider's keys are not known. */
  | 'keys'
  /** Nobody listens: the request was not sent. */
  | 'not listening'
  /** The process is gone, and so is the connection. */
  | 'connection'
  /** HAProxy has no replica for this request, or lost the one that had it. */
  | 'load balancer';

const DETECT: Readonly<Record<Refusal, (response: Response) => boolean>> = {
  store: (response) => isError(response, 500, 'Internal Server Error'),
  overload: (response) =>
    isError(response, 503, 'Service Unavailable') && hasRetryAfter(response) && !isOfKeys(response),
  limit: (response) => isError(response, 429, 'Too Many Requests') && hasRetryAfter(response),
  keys: (response) => isError(response, 503, 'Service Unavailable') && isOfKeys(response),
  'not listening': (response) => response.kind === 'failure' && response.code === 'ECONNREFUSED',
  connection: (response) => response.kind === 'failure' && !response.isHang,
  'load balancer': (response) =>
    response.kind === 'answer' &&
    (response.status === 502 || response.status === 503) &&
    response.text.startsWith('<html>'),
};

export const isTrueRefusal = (response: Response, allowed: ReadonlySet<Refusal>): boolean =>
  [...allowed].some((refusal) => DETECT[refusal](response));

function isError(response: Response, status: number, message: string): response is Answer {
  if (response.kind === 'failure' || response.status !== status) return false;
  const body = parseObject(response.text);
  const error = body && readObject(body, 'error');
  return body?.jsonrpc === '2.0' && error?.code === -32000 && error.message === message;
}

const hasRetryAfter = (response: Answer) =>
  /^[1-9]\d*$/.test(String(response.headers['retry-after']));

const isOfKeys = (response: Answer) => response.text.includes("provider's keys");

export type JsonObject = Readonly<Record<string, unknown>>;

export function parseObject(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export function readObject(object: JsonObject, name: string): JsonObject | undefined {
  const value = object[name];
  return isObject(value) ? value : undefined;
}

const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
