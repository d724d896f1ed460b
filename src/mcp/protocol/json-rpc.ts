// §4.4, §7.1: the JSON-RPC 2.0 envelope.

import { fail, failParams, type JsonRpcErrorObject } from '../../errors/gateway-error.ts';
import { writeExactJson } from '../../platform/exact-json.ts';
import { hasLevels, isObject, type JsonObject } from '../../platform/json.ts';
import { noteParts, toRawJson } from '../../platform/noted-json.ts';

export type RequestId = string | number;

/** One parsed message; `params` is unknown until its method reads it. */
export type JsonRpcMessage =
  | JsonRpcRequest
  | { readonly kind: 'notification'; readonly method: string; readonly params: unknown }
  | JsonRpcResponse;

export interface JsonRpcRequest {
  readonly kind: 'request';
  readonly id: RequestId;
  readonly method: string;
  readonly params: unknown;
}

/** A client's response to a server-initiated request; `result` is undefined for an error. */
export interface JsonRpcResponse {
  readonly kind: 'response';
  readonly method: undefined;
  readonly params: undefined;
  readonly id: unknown;
  readonly result: unknown;
  readonly error: unknown;
}

/** A message before the response to a request: a notification, or a server-initiated request. */
export interface OutgoingMessage {
  readonly method: string;
  readonly params: object;
  /** Present on requests. */
  readonly id?: string;
}

/** @throws GatewayError `invalid_request`, naming the invalid member. */
export function parseMessage(value: unknown): JsonRpcMessage {
  if (Array.isArray(value)) return failParsing('Batches are not supported; send one request.');
  if (!isObject(value)) return failParsing('The body must be a JSON object.');
  const { jsonrpc, id, method, params } = value;
  if (jsonrpc !== '2.0') return failParsing('jsonrpc must be "2.0".');
  if (method === undefined && ('result' in value || 'error' in value))
    return {
      kind: 'response',
      method,
      params: undefined,
      id,
      result: value.result,
      error: value.error,
    };
  if (typeof method !== 'string') return failParsing('method must be a string.');
  if (!('id' in value)) return { kind: 'notification', method, params };
  return isRequestId(id)
    ? { kind: 'request', id, method, params }
    : failParsing('id must be a string or a number.');
}

/** The `error` of a response or a task; undefined if invalid. */
export const readJsonRpcError = (error: unknown): JsonRpcErrorObject | undefined =>
  isObject(error) && typeof error.code === 'number' && typeof error.message === 'string'
    ? { code: error.code, message: error.message, ...('data' in error && { data: error.data }) }
    : undefined;

export const isJsonRpcError = (value: unknown): value is JsonRpcErrorObject =>
  isObject(value) && Number.isInteger(value.code) && typeof value.message === 'string';

// A number beyond the safe integers would be echoed as a different id.
export const isRequestId = (id: unknown): id is RequestId =>
  typeof id === 'string' || (typeof id === 'number' && Math.abs(id) <= Number.MAX_SAFE_INTEGER);

/** Ids that are repeated in each notification must be short: progress tokens, and subscription ids. */
export const isShortId = (id: RequestId): boolean => typeof id === 'number' || id.length <= 256;

const failParsing = (details: string): never => fail('invalid_request', { details });

/**
 * The members of `params`; none counts as an empty object.
 *
 * @throws GatewayError `invalid_params` if it is anything but an object.
 */
export function readParams(params: unknown): JsonObject {
  if (params === undefined) return {};
  return isObject(params) ? params : failParams('params must be an object');
}

/** @throws GatewayError `invalid_params` if the member is not a string. */
export function readString(members: JsonObject, name: string, owner = 'params'): string {
  const value = members[name];
  return typeof value === 'string' ? value : failParams(`${owner}.${name} must be a string`);
}

/** The `_meta` of any params; `{}` without one. */
export function readMeta(params: unknown): JsonObject {
  const meta = isObject(params) ? params._meta : undefined;
  return isObject(meta) ? meta : NO_META;
}

const NO_META: JsonObject = Object.freeze({});

// Custom members of `_meta`, from clients to servers: unknown to MCP and to the gateway.

/** Kept with the arguments for as long as the call runs: beyond either bound all are dropped. */
const MAX_BYTES = 8_192;
const MAX_LEVELS = 16;

/**
 * Selects the members that are passed on to servers. `sentText` is the text of the message. Undefined without custom members, and
 * if they are too large (`MAX_BYTES`) or too deep (`MAX_LEVELS`): they only mean something together.
 */
export function readCustomMeta(meta: JsonObject, sentText = ''): JsonObject | undefined {
  let custom: [string, unknown][] | undefined;
  for (const key of Object.keys(meta)) {
    if (isOfOneHop(key)) continue;
    const name = key.toLowerCase();
    if (isOfOneHop(name) || RESERVED.test(name)) continue;
    custom ??= [];
    custom.push([key, meta[key]]);
  }
  if (custom === undefined || !custom.every(([, value]) => hasLevels(value, MAX_LEVELS)))
    return undefined;
  const members = Object.fromEntries(custom);
  noteParts(members, sentText, ['params', '_meta']);
  return Buffer.byteLength(writeExactJson(toRawJson(members))) > MAX_BYTES ? undefined : members;
}

/**
 * Names that MCP reserves (by the second label of the prefix), and other names of traces and baggage: servers would attribute them
 * to the gateway.
 */
const RESERVED =
  /^(?:[^/]*\.)?(?:modelcontextprotocol|mcp)(?:\.[^/]*)?\/|^(?:b3|x-b3-.*|uber-trace-id|uberctx-.*|__proto__)$/;

// `_meta` of MCP: hop-by-hop members.

const PREFIX = 'io.modelcontextprotocol/';
/** `baggage` is never sent to servers. */
const NAMES: readonly string[] = ['progressToken', 'traceparent', 'tracestate', 'baggage'];

/** True for members that only the gateway itself may send to a server. */
export const isOfOneHop = (key: string): boolean => key.startsWith(PREFIX) || NAMES.includes(key);

/** Call ids of clients: Claude Code, VS Code, Codex. */
const CALL_IDS: readonly string[] = [
  'claudecode/toolUseId',
  'vscode.requestId',
  'x-codex-turn-metadata',
];

/** True if its value differs when the same call is made again. */
export const isMadeAnew = (key: string): boolean => isOfOneHop(key) || CALL_IDS.includes(key);
