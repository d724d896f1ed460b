// §18.3: for whom there is a process of its own.
import type { StdioUpstreamConfig } from '../config/upstream-config.ts';
import type { UpstreamCaller } from '../upstream.ts';

export interface ProcessKey {
  /** Who has the same shares a process. */
  readonly id: string;
  /** Whose process it is; undefined where all share it, and without authentication. */
  readonly user: string | undefined;
  /** The client's session that it ends with, not by being idle. */
  readonly sessionId: string | undefined;
}

/** Of the gateway itself, and of all where the process is shared. */
export const GATEWAY_KEY: ProcessKey = { id: 'gateway', user: undefined, sessionId: undefined };

export function findProcessKey(
  isolation: StdioUpstreamConfig['isolation'],
  { user, clientId, sessionId }: UpstreamCaller,
): ProcessKey {
  const isGateway = user === undefined && clientId === undefined && sessionId === undefined;
  if (isolation === 'shared' || isGateway) return GATEWAY_KEY;
  const owner = { user: user?.sub, sessionId: undefined };
  if (isolation === 'user') return { ...owner, id: toId('user', user?.sub) };
  // A client of the stateless era has none: it shares one with itself.
  return sessionId === undefined
    ? { ...owner, id: toId('client', user?.sub, clientId) }
    : { ...owner, id: toId('session', sessionId), sessionId };
}

/** Users choose their names: none can be taken for another, or for another kind. */
const toId = (...parts: readonly (string | undefined)[]): string =>
  JSON.stringify(parts.map((part) => part ?? null));

/** Whose subscriptions they are. */
export const findOwner = ({ user, clientId, sessionId }: UpstreamCaller): string =>
  sessionId ?? toId('client', user?.sub, clientId);
