import { getErrorCode } from '../platform/error-code.ts';
import { toVisibleJson } from '../platform/invisible.ts';
import type { JsonObject } from '../platform/json.ts';
import { quote, shorten } from '../platform/text.ts';
import { catalogue, type ErrorKey, type ErrorRow } from './catalogue.ts';

interface Failure {
  /** Replaces the row's short JSON-RPC message, which programs do not read. Must be as safe to show as `details`. */
  readonly message?: string;
  /** Replaces the row's sentence. It is shown to the caller, so it must never contain a secret or a stack. */
  readonly details?: string;
  /** Replaces the row's JSON-RPC error: the unchanged error of a server behind the gateway. */
  readonly jsonRpc?: JsonRpcErrorObject;
  /** Additional members of JSON-RPC `data`. */
  readonly data?: JsonObject;
  /** Additional response headers, such as `Allow`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** For the log only, never sent to the caller. */
  readonly cause?: unknown;
  /** Additional facts for the log, never sent to the caller. Must not contain a secret. */
  readonly facts?: JsonObject;
  /** RFC 6749 §4.1.2.1: where the error is reported to the OAuth client, instead of on a page in the browser. */
  readonly redirect?: ErrorRedirect;
}

/** JSON-RPC 2.0 §5.1. */
export interface JsonRpcErrorObject {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

interface ErrorRedirect {
  readonly url: string;
  /** False if the user has to confirm the redirect in the browser first. */
  readonly isAutomatic: boolean;
}

/** Ends a request with an error from the catalogue; the error boundary renders it. */
export class GatewayError extends Error {
  override readonly name = 'GatewayError';
  readonly key: ErrorKey;
  readonly row: ErrorRow;
  readonly failure: Failure;

  constructor(key: ErrorKey, failure: Failure = {}) {
    super(failure.details ?? catalogue[key].details, { cause: failure.cause });
    this.key = key;
    this.row = catalogue[key];
    this.failure = failure;
  }

  get logLevel(): ErrorRow['logLevel'] {
    return this.row.logLevel;
  }
}

/** @throws GatewayError */
export function fail(key: ErrorKey, failure?: Failure): never {
  throw new GatewayError(key, failure);
}

/** @throws the GatewayError that `toGatewayError` returns. */
export function failInternal(cause: unknown): never {
  throw toGatewayError(cause);
}

/**
 * Fails with the error of a server, or one that replaces it. `message` is sent to the client.
 * @throws GatewayError `upstream_error`
 */
export const failUpstream = (message: string, rest?: Pick<Failure, 'cause' | 'facts'>): never =>
  fail('upstream_error', { jsonRpc: { code: -32603, message }, ...rest });

/** @throws GatewayError `invalid_params` */
export function failParams(details: string): never {
  return fail('invalid_params', { details });
}

/** Converts anything thrown into a GatewayError: an unknown error becomes an `internal_error` with its cause. */
export function toGatewayError(thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError) return thrown;
  return getErrorCode(thrown) === STORE_UNAVAILABLE
    ? new GatewayError('store_unavailable', { cause: thrown, headers: { 'Retry-After': '1' } })
    : new GatewayError('internal_error', { cause: thrown });
}

/** The code of errors of a store that is down, frozen or too slow. */
export const STORE_UNAVAILABLE = 'ERR_STORE_UNAVAILABLE';

/** The stack of an error in an author's code, for the log. */
export const getStackFacts = (thrown: unknown): JsonObject =>
  thrown instanceof Error ? { stack: thrown.stack } : {};

/**
 * §7.1: an unknown name. The message is the same everywhere, so that a denied item cannot be distinguished from one that a server
 * lacks. Many clients show nothing but the message.
 */
interface UnknownItem {
  /** The kind of item, such as `tool`. */
  readonly noun: string;
  /** The name as the caller wrote it, except for parts that must not be logged. */
  readonly name: string;
  /** A similar name among those that this caller can see. */
  readonly nearest?: string | undefined;
  /** Additional members of `data`. */
  readonly data?: JsonObject;
  /** For the log only. */
  readonly facts?: JsonObject;
}

/** Maximum lengths of a name in the message and in `details`, in characters. */
const MAX_IN_MESSAGE = 100;
const MAX_IN_DETAILS = 200;

/** @throws GatewayError `invalid_params`. */
export function failUnknown({ noun, name, nearest, data, facts }: UnknownItem): never {
  const suggestion = nearest === undefined ? '' : ` Did you mean ${nearest}?`;
  return fail('invalid_params', {
    message: `Unknown ${noun}: ${showName(name)}.${suggestion}`,
    details: `Unknown ${noun} ${quote(name, MAX_IN_DETAILS)}`,
    ...(data && { data }),
    ...(facts && { facts }),
  });
}

/** Shows a name without quotation marks, invisible characters and characters that reverse the text direction. */
function showName(name: string) {
  // A character has at most two UTF-16 units, so the rest of a long text does not have to be read.
  const piece = shorten(name.slice(0, 2 * (MAX_IN_MESSAGE + 1)), MAX_IN_MESSAGE);
  return piece === '' ? '""' : toVisibleJson(piece).slice(1, -1);
}

/** A tool, prompt or resource is defined incorrectly: the message names the line in the author's code, without a stack. */
export class DefinitionError extends Error {
  override readonly name = 'DefinitionError';
}
