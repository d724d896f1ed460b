// JSON-RPC 2.0: what a server writes, read without trust.
import type { JsonRpcErrorObject } from '../../errors/gateway-error.ts';
import {
  cutPieces,
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

/** Undefined for what is no JSON, or nested too deep, or has too many values. `pieces` are its bytes as they came. */
export function parseServerJson(
  text: string,
  pieces?: readonly Uint8Array[],
): { readonly value: unknown } | undefined {
  if (findExceededBound(text, BOUNDS) !== undefined) return undefined;
  const value = text.length < MIN_NOTED ? undefined : parseUsualResponse(text, pieces);
  if (value !== undefined) return { value };
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

/** Characters. A shorter result is written again as soon as it is found in its response. */
const MIN_NOTED = 512;
/** From here on writing bytes is cheaper than making them of text. */
const MIN_PIECES = 16_384;

/** The orders in which the SDKs of MCP write a response: what stands before its result, and what behind. */
const USUAL_ENVELOPES: readonly (readonly [head: RegExp, tail: RegExp])[] = [
  [/^\{"jsonrpc":"2\.0","id":(0|[1-9]\d{0,14}),"result":/, /\}[ \t\r\n]*$/],
  [/^\{"result":/, /,"jsonrpc":"2\.0","id":(0|[1-9]\d{0,14})\}[ \t\r\n]*$/],
  [/^\{"jsonrpc":"2\.0","result":/, /,"id":(0|[1-9]\d{0,14})\}[ \t\r\n]*$/],
];
/** Characters at the end of a response, of which the tail is a part. */
const TAIL = 64;

/**
 * The response, with a note of how its result is written. Where what is between head and tail is one value of JSON, it is
 * the result, whatever is in it. The engine's own parser proves that: nothing else that does is faster, even where nothing
 * of the value is looked at. Undefined for what is written in another way.
 */
function parseUsualResponse(
  text: string,
  pieces: readonly Uint8Array[] | undefined,
): JsonObject | undefined {
  const end = text.slice(-TAIL);
  for (const [headForm, tailForm] of USUAL_ENVELOPES) {
    const head = headForm.exec(text);
    const tail = head && tailForm.exec(end);
    if (!head || !tail) continue;
    const start = head[0].length;
    const behind = end.length - tail.index;
    const written = text.slice(start, text.length - behind);
    const result = parseObject(written);
    if (result === undefined) return undefined;
    const isLong = pieces !== undefined && text.length >= MIN_PIECES;
    noteWritten(result, isLong ? cutPieces(pieces, start, behind) : written);
    return { jsonrpc: '2.0', id: Number(head[1] ?? tail[1]), result };
  }
  return undefined;
}
