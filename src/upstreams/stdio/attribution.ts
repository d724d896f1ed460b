// §18.3: a process does not say whose call its log messages and questions belong to.
import type { Call } from './calls.ts';

/**
 * The request that a message belongs to, among those that could take it: the only one, or the oldest of several of
 * one session, as all of these reach the same client.
 */
export function attribute(
  calls: readonly Call[],
  canTake: (call: Call) => boolean,
): Call | undefined {
  const [first, ...others] = calls.filter(canTake);
  const sessionId = first?.caller.sessionId;
  const isSameClient = (call: Call) =>
    sessionId !== undefined && call.caller.sessionId === sessionId;
  return others.every(isSameClient) ? first : undefined;
}
