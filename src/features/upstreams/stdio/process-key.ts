// §18.3: for whom there is a process of its own.
import type { StdioUpstreamConfig } from '../../../core/gateway-file/gateway-file.ts';
import type { UpstreamCaller } from '../upstream.ts';

export interface ProcessKey {
  /** Who has the same shares a process. */
  readonly id: string;
  /** Whether the process ends with a client's session, not by being idle. */
  readonly isOfSession: boolean;
}

/** Of the gateway itself, and of all where the process is shared. */
export const GATEWAY_KEY: ProcessKey = { id: 'gateway', isOfSession: false };

export function findProcessKey(
  isolation: StdioUpstreamConfig['isolation'],
  { user, clientId, sessionId }: UpstreamCaller,
): ProcessKey {
  const isGateway = user === undefined && clientId === undefined && sessionId === undefined;
  if (isolation === 'shared' || isGateway) return GATEWAY_KEY;
  if (isolation === 'user') return toKey('user', user?.sub);
  // A client of the stateless era has none: it shares one with itself.
  return sessionId === undefined
    ? toKey('client', user?.sub, clientId)
    : { ...toKey('session', sessionId), isOfSession: true };
}

/** Users choose their names: none can be taken for another, or for another kind. */
const toKey = (...parts: readonly (string | undefined)[]): ProcessKey => ({
  id: JSON.stringify(parts.map((part) => part ?? null)),
  isOfSession: false,
});

/** Whose subscriptions they are. */
export const findOwner = ({ user, clientId, sessionId }: UpstreamCaller): string =>
  sessionId ?? toKey('client', user?.sub, clientId).id;
