// Parses messages from a server (JSON-RPC 2.0), which are untrusted.

import { isUtf8 } from 'node:buffer';
import type { JsonRpcErrorObject } from '../../errors/gateway-error.ts';
import type { RequestId } from '../../mcp/protocol/json-rpc.ts';
import type { ListName } from '../../mcp/protocol/list-kinds.ts';
import { findListsThatChange } from '../../mcp/upstream/envelope.ts';
import { createUnreadResult } from '../../mcp/upstream/unread-result.ts';
import type {
  UpstreamDescription,
  UpstreamListener,
  UpstreamRequest,
} from '../../mcp/upstream/upstream.ts';
import { createCountedBus } from '../../platform/counted-bus.ts';
import {
  decodeUtf8,
  findExceededBound,
  isObject,
  type JsonObject,
  noteWritten,
  parseJson,
  parseObject,
} from '../../platform/json.ts';
import { noteSource, readExact } from '../../platform/noted-json.ts';
import { cutPieces, joinPieces, releaseChunks } from '../../platform/pieces.ts';
import type { JsonPath } from '../../platform/splice-json.ts';

export type ServerMessage =
  | ServerRequest
  | ServerNotification
  | { readonly kind: 'result'; readonly id: RequestId; readonly result: JsonObject }
  | {
      readonly kind: 'error';
      /** Null if the server could not read the id of the request. */
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

/** Undefined for a value that is not a JSON-RPC message. */
export function readServerMessage(value: unknown): ServerMessage | undefined {
  if (!isObject(value) || value.jsonrpc !== '2.0') return undefined;
  return 'method' in value ? readRequest(value) : readResponse(value);
}

function readRequest({ id, method, params = {} }: JsonObject): ServerMessage | undefined {
  if (typeof method !== 'string' || !isObject(params)) return undefined;
  if (id === undefined) {
    const isLog = method === 'notifications/message';
    return { kind: 'notification', method, params: isLog ? readExact(params) : params };
  }
  return isId(id) ? { kind: 'request', id, method, params: readExact(params) } : undefined;
}

function readResponse({ id, result, error }: JsonObject): ServerMessage | undefined {
  if (error === undefined)
    return isId(id) && isObject(result) ? { kind: 'result', id, result } : undefined;
  if (result !== undefined || !isErrorObject(error)) return undefined;
  const told = error.data === undefined ? error : { ...error, data: readExact(error).data };
  if (isId(id)) return { kind: 'error', id, error: told };
  return id === null || id === undefined ? { kind: 'error', id: null, error: told } : undefined;
}

const isId = (id: unknown): id is RequestId => typeof id === 'string' || typeof id === 'number';

/**
 * Reads a number that the gateway sent as an id or a progress token, as the server echoes it: some servers write it as a string.
 * Only the JSON spelling of the number is accepted, so not `03`, `3.0` or ` 3`.
 */
export function readEchoedNumber(echoed: unknown): number | undefined {
  if (typeof echoed === 'number') return echoed;
  const number = typeof echoed === 'string' ? Number(echoed) : undefined;
  return String(number) === echoed ? number : undefined;
}

const isErrorObject = (error: unknown): error is JsonRpcErrorObject & JsonObject =>
  isObject(error) && Number.isInteger(error.code) && typeof error.message === 'string';

// JSON from a server: its size is checked before it is parsed.

/** Far more than real messages have, but far less than would exhaust the stack or the memory. */
const BOUNDS = { levels: 200, values: 500_000 };

/** Like `parseServerJson`, for bytes as received. */
export function parseServerBytes(pieces: readonly Uint8Array[]): ParsedJson | undefined {
  const bytes = joinPieces(pieces);
  const response = bytes.length < MIN_UNREAD ? undefined : readUsualResponse(bytes, pieces);
  if (response !== undefined) return { value: response };
  const text = decodeUtf8(bytes);
  return text === undefined ? undefined : parseServerJson(text, pieces);
}

/** Like `parseServerBytes`, for the data of an event, in which invalid UTF-8 is replaced (WHATWG HTML §9.2.4). */
export function parseEventData(pieces: readonly Uint8Array[]): ParsedJson | undefined {
  const parsed = parseServerBytes(pieces);
  if (parsed !== undefined || isUtf8(joinPieces(pieces))) return parsed;
  return parseServerJson(joinPieces(pieces).toString('utf8'));
}

interface ParsedJson {
  readonly value: unknown;
}

/**
 * Undefined for text that is not JSON, is nested too deeply, or has too many values. `pieces` are the received bytes of the text.
 */
function parseServerJson(text: string, pieces?: readonly Uint8Array[]): ParsedJson | undefined {
  if (findExceededBound(text, BOUNDS) !== undefined) return undefined;
  const response = text.length < MIN_NOTED ? undefined : parseUsualResponse(text, pieces);
  if (response !== undefined) return { value: response };
  const value = parseJson(text);
  noteMessage(value, text);
  return value === undefined ? undefined : { value };
}

/** Records the values of a message that are passed on as written: a batch has several. */
function noteMessage(value: unknown, text: string, path: JsonPath = []) {
  if (Array.isArray(value))
    for (const [index, one] of value.entries()) noteMessage(one, text, [index]);
  if (!isObject(value)) return;
  for (const name of PASSED_ON) {
    const member = value[name];
    if (isObject(member)) noteSource(member, text, [...path, name]);
  }
}

const PASSED_ON = ['result', 'params', 'error'] as const;

/** In characters. For a shorter result, serializing it again is as fast as finding it in its response. */
const MIN_NOTED = 512;
/** In bytes. For a shorter result, searching for members costs as much as parsing. */
const MIN_UNREAD = 2048;
/** From this size on, writing bytes is cheaper than encoding text. */
const MIN_PIECES = 16_384;

/** The member orders in which MCP SDKs write a response: the text before the result, and the text after it. */
const USUAL_ENVELOPES: readonly (readonly [head: RegExp, tail: RegExp])[] = [
  [/^\{"jsonrpc":"2\.0","id":("?)(0|[1-9]\d{0,14})\1,"result":/, /\}[ \t\r\n]*$/],
  [/^\{"result":/, /,"jsonrpc":"2\.0","id":("?)(0|[1-9]\d{0,14})\1\}[ \t\r\n]*$/],
  [/^\{"jsonrpc":"2\.0","result":/, /,"id":("?)(0|[1-9]\d{0,14})\1\}[ \t\r\n]*$/],
];
/** Number of characters at the start and at the end of a response that contain head and tail. */
const ENVELOPE = 64;

interface Envelope {
  readonly id: number;
  /** The characters before and after the result. */
  readonly before: number;
  readonly behind: number;
}

/** `start` and `end` are the first and last characters of the response. Undefined if it is written in a different way. */
function findEnvelope(start: string, end: string): Envelope | undefined {
  for (const [headForm, tailForm] of USUAL_ENVELOPES) {
    const head = headForm.exec(start);
    const tail = head && tailForm.exec(end);
    if (!head || !tail) continue;
    const id = Number(head[2] ?? tail[2]);
    return { id, before: head[0].length, behind: end.length - tail.index };
  }
  return undefined;
}

/** Reads a response whose result is passed on unread. If there is exactly one object between head and tail, it is the result. */
function readUsualResponse(bytes: Buffer, pieces: readonly Uint8Array[]): JsonObject | undefined {
  const envelope = findEnvelope(
    bytes.toString('latin1', 0, ENVELOPE),
    bytes.toString('latin1', bytes.length - ENVELOPE),
  );
  if (envelope === undefined || !isUtf8(bytes)) return undefined;
  const { id, before, behind } = envelope;
  const end = bytes.length - behind;
  const result = createUnreadResult({
    bytes,
    pieces,
    isLong: bytes.length >= MIN_PIECES,
    start: before,
    end,
  });
  return result && { jsonrpc: '2.0', id, result };
}

/**
 * Reads a response, and records how its result is written. If there is a single JSON value between head and tail, it is the result,
 * whatever it contains: the engine's own parser proves that it is one value.
 */
function parseUsualResponse(
  text: string,
  pieces: readonly Uint8Array[] | undefined,
): JsonObject | undefined {
  const envelope = findEnvelope(text.slice(0, ENVELOPE), text.slice(-ENVELOPE));
  if (envelope === undefined) return undefined;
  const { id, before, behind } = envelope;
  const written = text.slice(before, text.length - behind);
  const result = parseObject(written);
  if (result === undefined) return undefined;
  const isLong = pieces !== undefined && text.length >= MIN_PIECES;
  noteWritten(result, isLong ? cutPieces(releaseChunks(pieces), before, behind) : written);
  return { jsonrpc: '2.0', id, result };
}

// Dispatches notifications from a server; one that cannot be attributed is dropped.

/**
 * Routes a notification that arrived with the answer to a request whose progress token was `token`. False if it does not belong to
 * that request.
 */
export function routeToRequest(
  { method, params }: ServerNotification,
  token: number,
  request: UpstreamRequest,
): boolean {
  if (method === 'notifications/message') request.onLog?.(params);
  else if (method !== 'notifications/progress') return false;
  else if (readEchoedNumber(params.progressToken) === token) request.onProgress?.(params);
  return true;
}

/** A change that a server announces to all listeners. */
export type ServerChange =
  | { readonly kind: 'list'; readonly list: ListName }
  | { readonly kind: 'resource'; readonly uri: string }
  | { readonly kind: 'elicitation'; readonly elicitationId: string };

const LISTS: Readonly<Record<string, ListName>> = {
  'notifications/tools/list_changed': 'tools',
  'notifications/prompts/list_changed': 'prompts',
  'notifications/resources/list_changed': 'resources',
};

/** Undefined for any other notification. */
export function readChange({ method, params }: ServerNotification): ServerChange | undefined {
  const list = Object.hasOwn(LISTS, method) ? LISTS[method] : undefined;
  if (list !== undefined) return { kind: 'list', list };
  const { uri, elicitationId } = params;
  if (method === 'notifications/resources/updated' && typeof uri === 'string')
    return { kind: 'resource', uri };
  return method === 'notifications/elicitation/complete' && typeof elicitationId === 'string'
    ? { kind: 'elicitation', elicitationId }
    : undefined;
}

// §18.3: listeners for a server's changes, keyed by the session or process that they share.

/** `isWanted` is true if a listener has subscribed to the resource. */
export function createChangeListeners<
  Listening extends { readonly listener: UpstreamListener },
  Source = void,
>(
  options: Parameters<typeof createCountedBus<string, Listening, Source>>[0],
  isWanted: (key: string, listening: Listening, uri: string) => boolean,
) {
  const bus = createCountedBus(options);

  function tell(key: string, change: ServerChange) {
    bus.publish(key, (listening) => {
      const { listener } = listening;
      if (change.kind === 'list') listener.listChanged(change.list);
      else if (change.kind === 'elicitation') listener.elicitationCompleted?.(change.elicitationId);
      else if (isWanted(key, listening, change.uri)) listener.resourceUpdated(change.uri);
    });
  }

  return {
    bus,
    tell,
    /** Notifies all lists, since changes may have been missed. */
    tellMissed(key: string, description: UpstreamDescription | undefined) {
      for (const list of findListsThatChange(description)) tell(key, { kind: 'list', list });
    },
  };
}
