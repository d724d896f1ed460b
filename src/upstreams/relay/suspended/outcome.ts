// What a call at a server comes to next.
import type { JsonRpcErrorObject } from '../../../errors/gateway-error.ts';
import { isObject, type JsonObject, parseObject } from '../../../platform/json.ts';
import { UpstreamError, type UpstreamFailure, type UpstreamQuestion } from '../../upstream.ts';
import { readQuestion } from '../questions.ts';

export type Outcome =
  | { readonly kind: 'result'; readonly result: JsonObject }
  /** The call goes on; `key` names the question in what the client answers. */
  | { readonly kind: 'question'; readonly key: string; readonly question: UpstreamQuestion }
  | {
      readonly kind: 'failed';
      readonly failure: UpstreamFailure;
      readonly message: string;
      readonly jsonRpcError?: JsonRpcErrorObject | undefined;
    };

export const toFailedOutcome = (thrown: unknown): Outcome =>
  thrown instanceof UpstreamError
    ? {
        kind: 'failed',
        failure: thrown.failure,
        message: thrown.message,
        jsonRpcError: thrown.jsonRpcError,
      }
    : { kind: 'failed', failure: 'invalid', message: 'the call failed unexpectedly' };

export const toUpstreamError = ({
  failure,
  message,
  jsonRpcError,
}: Extract<Outcome, { kind: 'failed' }>): UpstreamError =>
  new UpstreamError(failure, message, jsonRpcError && { jsonRpcError });

/** What another replica wrote. Undefined for what this version does not know. */
export function parseOutcome(text: string): Outcome | undefined {
  const { kind, result, key, failure, message, jsonRpcError, ...rest } = parseObject(text) ?? {};
  const question = readQuestion(rest.question);
  if (kind === 'result' && isObject(result)) return { kind, result };
  if (kind === 'question' && typeof key === 'string' && question !== undefined) {
    return { kind, key, question };
  }
  if (kind !== 'failed' || !isFailure(failure) || typeof message !== 'string') return undefined;
  return isJsonRpcError(jsonRpcError)
    ? { kind, failure, message, jsonRpcError }
    : { kind, failure, message };
}

const FAILURES: Readonly<Record<UpstreamFailure, true>> = {
  unavailable: true,
  timeout: true,
  invalid: true,
  overloaded: true,
  aborted: true,
  error: true,
};

const isFailure = (value: unknown): value is UpstreamFailure =>
  typeof value === 'string' && Object.hasOwn(FAILURES, value);

const isJsonRpcError = (value: unknown): value is JsonRpcErrorObject =>
  isObject(value) && typeof value.code === 'number' && typeof value.message === 'string';
