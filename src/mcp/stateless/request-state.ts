// MCP 2026-07-28 "Multi Round-Trip Requests": requestState goes through the client, so it is sealed,
// and bound to its user, to the call and to its time.

import type { UserContext } from '../../endpoint/user-context.ts';
import { fail } from '../../errors/gateway-error.ts';
import type { Clock } from '../../platform/clock.ts';
import { isObject, isStringArray, type JsonObject, parseObject } from '../../platform/json.ts';
import { hashSha256 } from '../../platform/sha256.ts';
import type { JsonRpcRequest } from '../../protocol/json-rpc.ts';
import { checkRecordVersion, RECORD_VERSION } from '../../store/record-version.ts';
import type { Seal } from '../../store/seal/seal.ts';

/** What a call has come to when it asks. */
export interface RequestProgress {
  /** The client's answers so far, by key. */
  readonly answers: JsonObject;
  /** Keys of the questions that the client is asked now: answers to others do not count. */
  readonly asked: readonly string[];
  /** What a catalogue that passes calls on keeps of its call. */
  readonly relayed?: JsonObject | undefined;
}

export interface RequestState {
  /** `binding` is that of the call, by `computeBinding`. */
  seal(binding: string, progress: RequestProgress): Promise<string>;
  /** @throws GatewayError `invalid_params` for a state of another call, user or time. */
  open(binding: string, state: string): Promise<OpenedState>;
}

/** 0.1.0 does not say what it asked; its states are good for an hour. */
export type OpenedState = Pick<RequestProgress, 'answers'> & Partial<RequestProgress>;

/** The call that a state is good for, and no other. */
export function computeBinding(
  user: UserContext | undefined,
  { method, params }: JsonRpcRequest,
): string {
  const { name, uri, arguments: args, ref, argument } = isObject(params) ? params : {};
  const bound = [user?.sub ?? null, method, name, uri, args];
  // Only completions have these: states of other calls are as older versions sealed them.
  if (ref !== undefined || argument !== undefined) bound.push(ref, argument);
  return `mcp:request-state:${hashSha256(JSON.stringify(bound))}`;
}

/** Long enough for a person to look something up before answering. */
const LIFETIME_MS = 3_600_000;

/** `getSeal` may wait for the shared store, once. */
export function createRequestState(getSeal: () => Promise<Seal>, clock: Clock): RequestState {
  const requireSeal = () => getSeal().catch((cause: unknown) => fail('internal_error', { cause }));

  return {
    async seal(binding, { answers, asked, relayed }) {
      const expiresAt = clock.now() + LIFETIME_MS;
      const text = JSON.stringify({ version: RECORD_VERSION, expiresAt, answers, asked, relayed });
      return (await requireSeal()).seal(binding, text);
    },
    async open(binding, state) {
      const text = (await requireSeal()).open(binding, state);
      const { version, expiresAt, answers, asked, relayed } = (text && parseObject(text)) || {};
      checkRecordVersion(version, 'params.requestState');
      if (typeof expiresAt !== 'number' || !isObject(answers) || expiresAt <= clock.now()) {
        fail('invalid_params', {
          details:
            'params.requestState belongs to another call, or is more than an hour old. Call again without it.',
        });
      }
      return {
        answers,
        ...(isStringArray(asked) && { asked }),
        ...(isObject(relayed) && { relayed }),
      };
    },
  };
}
