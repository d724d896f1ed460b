import { toVisibleJson } from '../platform/invisible.ts';
import type { JsonObject } from '../platform/json.ts';
import { quote, shorten } from '../platform/text.ts';
import { catalogue, type ErrorKey, type ErrorRow } from './catalogue.ts';

interface Failure {
  /** In place of the row's short text in JSON-RPC, which programs do not read. As `details`. */
  readonly message?: string;
  /** In place of the row's sentence. Shown to the caller: never a secret, never a stack. */
  readonly details?: string;
  /** In place of all that the row says as JSON-RPC: the error of a server behind the gateway, as it was. */
  readonly jsonRpc?: JsonRpcErrorObject;
  /** Further members of JSON-RPC `data`. */
  readonly data?: JsonObject;
  /** Further response headers, such as `Allow`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** For the log only, never echoed. */
  readonly cause?: unknown;
  /** Further facts for the log, never echoed: never a secret. */
  readonly facts?: JsonObject;
  /** RFC 6749 §4.1.2.1: the address at which an OAuth client hears of it, in place of the browser. */
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
  /** Otherwise the browser's user is asked first. */
  readonly isAutomatic: boolean;
}

/** Ends a request with a row of the catalogue; the error boundary renders it. */
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

/** @throws GatewayError always. */
export function fail(key: ErrorKey, failure?: Failure): never {
  throw new GatewayError(key, failure);
}

/** @throws GatewayError `internal_error` always. */
export const failInternal = (cause: unknown): never => fail('internal_error', { cause });

/** The error of a server, or one in its place: `message` reaches the client. @throws GatewayError `upstream_error` always. */
export const failUpstream = (message: string, rest?: Pick<Failure, 'cause' | 'facts'>): never =>
  fail('upstream_error', { jsonRpc: { code: -32603, message }, ...rest });

/** @throws GatewayError `invalid_params` always. */
export function failParams(details: string): never {
  return fail('invalid_params', { details });
}

/** Anything thrown as a GatewayError: what is unknown becomes an `internal_error` with its cause. */
export const toGatewayError = (thrown: unknown): GatewayError =>
  thrown instanceof GatewayError ? thrown : new GatewayError('internal_error', { cause: thrown });

/** For the log: where an author's code threw. */
export const getStackFacts = (thrown: unknown): JsonObject =>
  thrown instanceof Error ? { stack: thrown.stack } : {};

/**
 * §7.1: a name that nobody has, in the same words wherever it is looked for: what is denied, and what one server or another
 * does not have, cannot be told from each other. Many clients show nothing but the message.
 */
interface UnknownItem {
  /** Such as `tool`. */
  readonly noun: string;
  /** In the caller's words, but for what no log may have. */
  readonly name: string;
  /** The name that may have been meant, among those that this caller sees. */
  readonly nearest?: string | undefined;
  /** Further members of `data`. */
  readonly data?: JsonObject;
  /** For the log only. */
  readonly facts?: JsonObject;
}

/** Characters of a name that the message shows, and that `details` does. */
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

/** Without quotation marks, and with nothing that is invisible or turns other text around. */
function showName(name: string): string {
  // No character takes more than two units: of a long text nobody has to read the rest.
  const piece = shorten(name.slice(0, 2 * (MAX_IN_MESSAGE + 1)), MAX_IN_MESSAGE);
  return piece === '' ? '""' : toVisibleJson(piece).slice(1, -1);
}

/** A tool, prompt or resource is defined wrongly: its author's line to mend, no stack. */
export class DefinitionError extends Error {
  override readonly name = 'DefinitionError';
}
