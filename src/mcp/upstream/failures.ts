// §18.4: results of failed calls, and one line in the log for each kind of failure.

import { catalogue } from '../../errors/catalogue.ts';
import { fail, failUpstream, type JsonRpcErrorObject } from '../../errors/gateway-error.ts';
import { isObject } from '../../platform/json.ts';
import { createWarnThrottle } from '../../platform/throttle.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { URL_REQUIRED } from '../calls/client-answers.ts';
import type { RawResult } from '../catalog/catalog.ts';
import type { ClientCapabilities } from '../catalog/client-requests.ts';
import type { Era } from '../protocol/revisions.ts';
import { nameAskerInMessage, type RelayedRequest } from './server-request.ts';
import { mayBeCarriedOut, UpstreamError, type UpstreamFailure } from './upstream.ts';

/**
 * Creates the result of a failed request: one that the client's model can read, or for methods without such results a JSON-RPC
 * error.
 *
 * @throws GatewayError; rethrows anything that is not a server failure.
 */
export type ToFailedResult = (
  server: string,
  request: Pick<RelayedRequest, 'method' | 'isRepeatable'>,
  thrown: unknown,
  client: { readonly era: Era; readonly capabilities: ClientCapabilities },
) => RawResult;

export function createToFailedResult({ clock, log }: Runtime): ToFailedResult {
  const warnings = new Map<string, (method: string, thrown: UpstreamError) => void>();

  return function toFailedResult(server, request, thrown, { era, capabilities }) {
    const { method } = request;
    if (thrown instanceof CallRefusedError) return toToolErrorOrFail(method, thrown.message);
    if (!(thrown instanceof UpstreamError)) throw thrown;
    const { failure, jsonRpcError = NO_ERROR } = thrown;
    if (failure === 'aborted') fail('request_cancelled');
    if (failure === 'error') {
      if (jsonRpcError.code !== URL_REQUIRED) return failWithJsonRpc(jsonRpcError, era);
      const jsonRpc = toUrlRequired(server, jsonRpcError, capabilities);
      return jsonRpc.code === URL_REQUIRED
        ? fail('upstream_error', { jsonRpc, facts: { server } })
        : toToolErrorOrFail(method, jsonRpc.message);
    }
    // At most one line a minute per server and kind of failure; the number of both does not depend on what callers send.
    const kind = `${server} ${failure}`;
    const { advice, tell } = FAILURES[failure];
    const warn =
      warnings.get(kind) ??
      createWarnThrottle(clock, (ofMethod: string, { logMessage, cause }: UpstreamError) =>
        log.warn(`A call to ${server} failed: ${logMessage}. ${advice}`, {
          server,
          failure,
          method: ofMethod,
          cause,
        }),
      );
    warnings.set(kind, warn);
    warn(method, thrown);
    const told = tell(server, thrown.message);
    if (!mayBeCarriedOut(failure)) return toToolErrorOrFail(method, told);
    const mayRepeat = method !== 'tools/call' || request.isRepeatable === true;
    return toToolErrorOrFail(method, `${told} ${mayRepeat ? TRY_AGAIN : CHECK_FIRST}`);
  };
}

const CHECK_FIRST = 'The call may have been done: check before you repeat it.';
const TRY_AGAIN = 'Try again in a moment.';

/** A tool tells the model in its result. @throws GatewayError for any other method */
function toToolErrorOrFail(method: RelayedRequest['method'], text: string): RawResult {
  if (method !== 'tools/call') failUpstream(text);
  return { content: [{ type: 'text', text }], isError: true };
}

/** MCP 2026-07-28: a missing client capability returns 400, even if it is a server that needs it. */
const failWithJsonRpc = (jsonRpc: JsonRpcErrorObject, era: Era): never =>
  fail(
    era === 'stateless' && jsonRpc.code === catalogue.missing_client_capability.jsonrpc.code
      ? 'missing_client_capability'
      : 'upstream_error',
    { jsonRpc },
  );

const NO_ERROR: JsonRpcErrorObject = {
  code: -32603,
  message: 'The server answered with an error.',
};

/**
 * `tell` says to the client's model what happened, and `reason` continues a sentence about the server; `advice` is for the
 * operator.
 */
const FAILURES: Readonly<
  Record<
    Exclude<UpstreamFailure, 'aborted' | 'error'>,
    { tell(server: string, reason: string): string; readonly advice: string }
  >
> = {
  unavailable: {
    tell: (server, reason) =>
      `${server} is not available now; try again in a moment. The reason: ${reason}.`,
    advice: 'Check that it runs, and its address and credentials in the configuration file.',
  },
  interrupted: {
    tell: (server, reason) => `${server} gave no answer: ${reason}.`,
    advice: 'Its own log, or that of a proxy in front of it, may say why.',
  },
  timeout: {
    tell: (server) => `${server} did not answer in time, and was told to cancel the call.`,
    advice: 'If its calls take that long, raise its "timeout" in the configuration file.',
  },
  session_lost: {
    tell: (server) =>
      `${server} had lost its session with the gateway, probably because it was restarted. A new one has been opened.`,
    advice:
      'It should answer 404 to a session that it does not know (MCP "Session Management"), so that the gateway opens a new session and sends the call again.',
  },
  invalid: {
    tell: (server, reason) =>
      `${server} gave no valid answer: ${reason}. If this continues, tell the operator of that server.`,
    advice: 'Its own log may say why.',
  },
  overloaded: {
    tell: (server, reason) => `The gateway gave up the answer of ${server}: ${reason}.`,
    advice: 'The gateway bounds what answers may take: docs/operations/limits.md "Bounds".',
  },
};

// MCP 2025-11-25 "URL Elicitation Required Errors": a call that fails until its user has opened a page. Only clients
// that declared elicitation by URL can handle it.

/** The error, with messages that name the asking server. */
function nameAskerInError(server: string, error: JsonRpcErrorObject): JsonRpcErrorObject {
  const { data } = error;
  if (!isObject(data) || !Array.isArray(data.elicitations)) return error;
  const elicitations = data.elicitations.map((one: unknown) =>
    isObject(one) ? nameAskerInMessage(server, one) : one,
  );
  return { ...error, data: { ...data, elicitations } };
}

/** The error in a form that its client can use: with the name of the server, or with a message that no page can be opened. */
export const toUrlRequired = (
  server: string,
  error: JsonRpcErrorObject,
  { elicitationUrl }: ClientCapabilities,
): JsonRpcErrorObject =>
  elicitationUrl === true
    ? nameAskerInError(server, error)
    : {
        code: -32603,
        message: `${server} needs its user to open a page first, for example to log in or to agree, and this client cannot be sent there. Use a client that supports elicitation by URL, or ask the operator of the gateway for another way.`,
      };

/** Ends a call that cannot be passed on; `message` is for the client's model. */
export class CallRefusedError extends Error {
  override readonly name = 'CallRefusedError';
}
