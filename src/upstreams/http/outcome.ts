// What the outcome of a call means to whoever asked.
import type { JsonRpcErrorObject } from '../../errors/gateway-error.ts';
import type { JsonObject } from '../../platform/json.ts';
import { readServerMessage } from '../messages/server-message.ts';
import { UpstreamError } from '../upstream.ts';
import { toRefusal } from './failures.ts';
import type { CallOutcome, Refusal } from './server-call.ts';

/** @throws UpstreamError */
export function getResult(outcome: CallOutcome): JsonObject {
  if (outcome.kind === 'result') return outcome.result;
  const error = findError(outcome);
  if (error === undefined && outcome.kind === 'refused') {
    throw toRefusal(outcome);
  }
  throw new UpstreamError('error', 'it answered with an error', {
    ...(error !== undefined && { jsonRpcError: error }),
  });
}

/** The error of JSON-RPC, whatever the status it came with; that of 401 and 403 is HTTP's. */
export function findError(outcome: CallOutcome): JsonRpcErrorObject | undefined {
  if (outcome.kind === 'error') return outcome.error;
  return outcome.kind === 'refused' ? findErrorInBody(outcome) : undefined;
}

function findErrorInBody({ status, body }: Refusal): JsonRpcErrorObject | undefined {
  if (status === 401 || status === 403 || body === undefined) return undefined;
  const message = readServerMessage(body);
  return message?.kind === 'error' ? message.error : undefined;
}
