// §18.3: a process does not say whose request its log messages and questions belong to.
import type { OpenRequest } from './open-requests.ts';

/**
 * The request that a message belongs to, among those that could take it: the only one, or the oldest of several of
 * one session, as all of these reach the same client.
 */
export function attribute(
  openRequests: readonly OpenRequest[],
  canTake: (request: OpenRequest) => boolean,
): OpenRequest | undefined {
  const [first, ...others] = openRequests.filter(canTake);
  const sessionId = first?.caller.sessionId;
  const isSameClient = (request: OpenRequest) =>
    sessionId !== undefined && request.caller.sessionId === sessionId;
  return others.every(isSameClient) ? first : undefined;
}
