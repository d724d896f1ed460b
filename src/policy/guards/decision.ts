// §26.2: what a guard answers, read without trust.

import { isObject, type JsonObject } from '../../platform/json.ts';

export type Decision =
  | { readonly kind: 'pass' }
  | { readonly kind: 'change'; readonly value: unknown }
  | { readonly kind: 'refuse'; readonly message: string | undefined };

export const PASS: Decision = { kind: 'pass' };

/** The guard could not be asked, or answered what cannot be used; the message is for the log, without what it was asked. */
export class GuardFailure extends Error {
  override readonly name = 'GuardFailure';
}

/**
 * What a caller sent cannot be asked about: there is too much of it. It is refused whatever `onError` says, or everybody could
 * have a guard fail that lets pass.
 */
export class TooMuchForGuard extends Error {
  override readonly name = 'TooMuchForGuard';
}

/** @throws GuardFailure for what is none. */
export function readDecision(answer: unknown): Decision {
  if (!isObject(answer)) throw new GuardFailure('its answer is no object');
  const { decision, message, value } = answer;
  switch (decision) {
    case 'pass':
      return PASS;
    case 'refuse':
      return { kind: 'refuse', message: typeof message === 'string' ? message : undefined };
    case 'change':
      if (value === undefined) throw new GuardFailure('it answered "change" without a value');
      return { kind: 'change', value };
    default:
      throw new GuardFailure('its answer has no "decision" that is pass, change or refuse');
  }
}

/**
 * As `readDecision`, of who may answer in the shapes of SEP-2624, too.
 *
 * @throws GuardFailure
 */
export function readAnswer(answer: unknown): Decision {
  if (!isObject(answer) || 'decision' in answer) return readDecision(answer);
  if (typeof answer.valid === 'boolean') return readValidation(answer);
  if (typeof answer.modified === 'boolean') return readMutation(answer);
  throw new GuardFailure('its answer has neither "decision" nor "valid" nor "modified"');
}

/** SEP-2624 "Validator": what is no error does not block. */
function readValidation({ valid, severity = 'error', messages }: JsonObject): Decision {
  if (valid === true || severity === 'warn' || severity === 'info') return PASS;
  const said = Array.isArray(messages) ? messages : [];
  const words = said.flatMap((one: unknown) =>
    isObject(one) && typeof one.message === 'string' && (one.severity ?? 'error') === 'error'
      ? [one.message]
      : [],
  );
  return { kind: 'refuse', message: words.length === 0 ? undefined : words.join(' ') };
}

/** SEP-2624 "Mutator". */
function readMutation({ modified, payload }: JsonObject): Decision {
  if (modified === false) return PASS;
  if (payload === undefined) throw new GuardFailure('it answered "modified" without a payload');
  return { kind: 'change', value: payload };
}
