// Encodes the arguments of the admission script, and reads its reply.
import { buildSessionKey } from '../keys.ts';
import {
  type Admission,
  type LimitWindow,
  NO_GRANT,
  NO_SESSION,
  type SessionAccess,
  StoreUnavailable,
} from '../store.ts';
import type { RedisAccess } from './command-runner.ts';
import { encodeOwner, parseSessionFields } from './sessions.ts';

/** A request to admit. */
export interface AdmissionRequest {
  readonly windows: readonly LimitWindow[];
  readonly access: SessionAccess | undefined;
  readonly grantKey?: string | undefined;
}

export interface WantedPermits {
  readonly window: LimitWindow;
  readonly permits: number;
}

/** In the script's ARGV for a session: no session, or read it only; else seconds. */
const NO_ACCESS = -1;
const READ_ONLY = 0;

/** In the script's ARGV for a request without a grant; else the index of its key among those of grants. */
const NO_GRANT_INDEX = 0;

/** A key is one window, of one length and maximum: requests that share a window, or a grant, name it by its index. */
export function encodeRequests(
  requests: readonly AdmissionRequest[],
  wanted: readonly WantedPermits[],
  { isCluster, sessionKeyPrefix }: Pick<RedisAccess, 'isCluster' | 'sessionKeyPrefix'>,
) {
  const windowKeys: string[] = [];
  const limits: number[] = [];
  const indexes = new Map<string, number>();
  const grantIndexes = new Map<string, number>();
  const sessionKeys: string[] = [];
  const owners: string[] = [];
  const places: number[] = [];
  for (const { windows, access, grantKey } of requests) {
    let grantIndex = NO_GRANT_INDEX;
    if (grantKey !== undefined) {
      grantIndex = grantIndexes.get(grantKey) ?? grantIndexes.size + 1;
      grantIndexes.set(grantKey, grantIndex);
    }
    places.push(grantIndex, windows.length);
    for (const { key, windowMs, max } of windows) {
      let index = indexes.get(key);
      if (index === undefined) {
        index = windowKeys.push(key);
        limits.push(windowMs, max);
        indexes.set(key, index);
      }
      places.push(index);
    }
    if (access === undefined) {
      places.push(NO_ACCESS);
    } else {
      sessionKeys.push(buildSessionKey(sessionKeyPrefix, access.sessionId));
      places.push(access.slideSeconds ?? READ_ONLY);
      owners.push(...encodeOwner(access.owner));
    }
  }
  const numbers = [
    windowKeys.length,
    grantIndexes.size,
    isCluster ? 1 : 0,
    wanted.length,
    ...limits,
    ...wanted.flatMap(({ window, permits }) => [indexes.get(window.key) ?? 0, permits]),
    ...places,
  ];
  return {
    keys: [...windowKeys, ...grantIndexes.keys(), ...sessionKeys],
    // One argument for all numbers: the client library encodes each argument by itself. Owners may contain what Lua cannot decode.
    args: [JSON.stringify(numbers), ...owners],
    /** The batch as it was sent, and the place of each grant's key among those of grants, from 1. */
    batch: { requests, wanted, grantIndexes },
  };
}

/** The permits that were taken from a window: perhaps none. */
export interface GrantedPermits {
  readonly permits: number;
  /** The field under which Redis keeps them. */
  readonly end: string;
  /** Requests that still fit in addition to these permits. */
  readonly remaining: number;
  /** As in a verdict. */
  readonly resetAt: number;
  readonly resetInMs: number;
}

/** Values in the reply for each request, and for each window from which permits are wanted. */
const VALUES = 4;

/** Reads the outcome of each request, in their order, and the permits of each window from which they were wanted. */
export function readReply(
  text: unknown,
  { requests, wanted, grantIndexes }: ReturnType<typeof encodeRequests>['batch'],
  suffix: string,
) {
  const firstVersion = 1 + VALUES * requests.length;
  const firstShare = firstVersion + grantIndexes.size;
  const reply: unknown = typeof text === 'string' ? JSON.parse(text) : undefined;
  if (!Array.isArray(reply) || reply.length !== firstShare + VALUES * wanted.length)
    throw new Error('Redis answered the admission script with no list of its length');
  const now = Number(reply[0]);
  const admissions = requests.map(({ windows, grantKey }, at): Admission => {
    const index = grantKey === undefined ? undefined : grantIndexes.get(grantKey);
    const grant = index === undefined ? NO_GRANT : readGrant(reply[firstVersion + index - 1]);
    const first = 1 + VALUES * at;
    const decision: unknown = reply[first];
    const session = readSession(reply[first + 3]);
    if (typeof decision !== 'number') {
      const limitFailure = createFailure(decision);
      return { verdict: undefined, entry: undefined, limitFailure, session, grant };
    }
    const window = windows[Math.abs(decision) - 1];
    if (window === undefined) return { verdict: undefined, entry: undefined, session, grant };
    const isAdmitted = decision > 0;
    const resetAt = Number(reply[first + 2]) + window.windowMs;
    return {
      verdict: {
        isAdmitted,
        scope: window.scope,
        limit: window.max,
        remaining: isAdmitted ? window.max - Number(reply[first + 1]) : 0,
        resetAt,
        resetInMs: resetAt - now,
      },
      entry: isAdmitted ? `${now}-${suffix}.${at}` : undefined,
      session,
      grant,
    };
  });
  const granted = wanted.map(({ window: { max, windowMs } }, at): GrantedPermits => {
    const first = firstShare + VALUES * at;
    const resetAt = Number(reply[first + 3]) + windowMs;
    return {
      permits: Number(reply[first]),
      end: String(reply[first + 1]),
      remaining: max - Number(reply[first + 2]),
      resetAt,
      resetInMs: resetAt - now,
    };
  });
  return { admissions, granted };
}

/** Redis returns an empty string if there is no value. */
function readGrant(version: unknown) {
  if (typeof version === 'string') return version === '' ? NO_GRANT : { version };
  return { failure: createFailure(version) };
}

function readSession(found: unknown) {
  if (typeof found === 'string') return { failure: createFailure(found) };
  if (!Array.isArray(found)) return NO_SESSION;
  try {
    return { record: parseSessionFields(found) };
  } catch (cause) {
    return { failure: createFailure(cause) };
  }
}

const createFailure = (cause: unknown) =>
  new StoreUnavailable('Redis could not run a command', { cause });
