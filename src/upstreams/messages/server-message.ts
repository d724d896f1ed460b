// JSON-RPC 2.0: what a server writes, read without trust.
import type { JsonRpcErrorObject } from '../../errors/gateway-error.ts';
import { findExceededBound, isObject, type JsonObject } from '../../platform/json.ts';
import type { RequestId } from '../../protocol/json-rpc.ts';

export type ServerMessage =
  | ServerRequest
  | ServerNotification
  | { readonly kind: 'result'; readonly id: RequestId; readonly result: JsonObject }
  | {
      readonly kind: 'error';
      /** Null where the server could not tell what it answers. */
      readonly id: RequestId | null;
      readonly error: JsonRpcErrorObject;
    };

export interface ServerRequest {
  readonly kind: 'request';
  readonly id: RequestId;
  readonly method: string;
  readonly params: JsonObject;
}

export interface ServerNotification {
  readonly kind: 'notification';
  readonly method: string;
  readonly params: JsonObject;
}

/** Undefined for what is no message of JSON-RPC. */
export function readServerMessage(value: unknown): ServerMessage | undefined {
  if (!isObject(value) || value.jsonrpc !== '2.0') return undefined;
  return 'method' in value ? readRequest(value) : readResponse(value);
}

function readRequest({ id, method, params = {} }: JsonObject): ServerMessage | undefined {
  if (typeof method !== 'string' || !isObject(params)) return undefined;
  if (id === undefined) return { kind: 'notification', method, params };
  return isId(id) ? { kind: 'request', id, method, params } : undefined;
}

function readResponse({ id, result, error }: JsonObject): ServerMessage | undefined {
  if (error === undefined) {
    return isId(id) && isObject(result) ? { kind: 'result', id, result } : undefined;
  }
  if (result !== undefined || !isErrorObject(error)) return undefined;
  if (isId(id)) return { kind: 'error', id, error };
  return id === null || id === undefined ? { kind: 'error', id: null, error } : undefined;
}

const isId = (id: unknown): id is RequestId => typeof id === 'string' || typeof id === 'number';

const isErrorObject = (error: unknown): error is JsonRpcErrorObject =>
  isObject(error) && Number.isInteger(error.code) && typeof error.message === 'string';

// JSON of a server: bounded before it is parsed.

/** Far more than anybody writes, far less than fills a stack or the memory. */
const BOUNDS = { levels: 200, values: 500_000 };

/** Undefined for what is no JSON, or nested too deep, or has too many values. */
export function parseServerJson(text: string): { readonly value: unknown } | undefined {
  if (findExceededBound(text, BOUNDS) !== undefined) return undefined;
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}
