// JSON-RPC 2.0: what a server writes, read without trust.
import type { JsonRpcErrorObject } from '../../errors/gateway-error.ts';
import {
  findExceededBound,
  isObject,
  type JsonObject,
  noteWritten,
  parseObject,
} from '../../platform/json.ts';
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

/** Undefined for what is no JSON, or nested too deep, or has too many values. `bytes` is the text as it came. */
export function parseServerJson(
  text: string,
  bytes?: Uint8Array,
): { readonly value: unknown } | undefined {
  if (findExceededBound(text, BOUNDS) !== undefined) return undefined;
  const value = bytes === undefined ? undefined : parseUsualResponse(text, bytes);
  if (value !== undefined) return { value };
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

/** A shorter result is written again sooner than it is found in its response. */
const MIN_NOTED_BYTES = 4_096;
const OPENING_BRACE = 0x7b;

/** The orders in which the SDKs of MCP write a response: what stands before its result, and what behind. */
const USUAL_ENVELOPES: readonly (readonly [head: RegExp, tail: RegExp])[] = [
  [/^\{"jsonrpc":"2\.0","id":(0|[1-9]\d{0,14}),"result":/, /\}[ \t\r\n]*$/],
  [/^\{"result":/, /,"jsonrpc":"2\.0","id":(0|[1-9]\d{0,14})\}[ \t\r\n]*$/],
  [/^\{"jsonrpc":"2\.0","result":/, /,"id":(0|[1-9]\d{0,14})\}[ \t\r\n]*$/],
];
/** Characters at the end of a response, of which the tail is a part. */
const TAIL = 64;

/**
 * The response, with the bytes of its result noted. Where what is between head and tail is one value of JSON, it is the
 * result, whatever is in it. Undefined for all that is short or written in another way.
 */
function parseUsualResponse(text: string, bytes: Uint8Array): JsonObject | undefined {
  // A byte order mark, which the text has no more, would shift all that follows.
  if (bytes.length < MIN_NOTED_BYTES || bytes[0] !== OPENING_BRACE) return undefined;
  const end = text.slice(-TAIL);
  for (const [headForm, tailForm] of USUAL_ENVELOPES) {
    const head = headForm.exec(text);
    const tail = head && tailForm.exec(end);
    if (!head || !tail) continue;
    const behind = end.length - tail.index;
    const result = parseObject(text.slice(head[0].length, text.length - behind));
    if (result === undefined) return undefined;
    noteWritten(result, bytes.subarray(head[0].length, bytes.length - behind));
    return { jsonrpc: '2.0', id: Number(head[1] ?? tail[1]), result };
  }
  return undefined;
}
