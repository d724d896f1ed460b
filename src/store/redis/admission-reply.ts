// What the admission script answers.
import {
  type Admission,
  type GrantLookup,
  type LimitWindow,
  NO_GRANT,
  NO_SESSION,
  type SessionLookup,
  StoreUnavailable,
} from '../store.ts';
import type { AdmissionBatch, AdmissionRequest } from './admission-request.ts';
import { parseSessionFields } from './session-hash.ts';

/** What was taken of what was wanted of a window: perhaps none. */
export interface GrantedPermits {
  readonly permits: number;
  /** By which Redis finds them again. */
  readonly end: string;
  /** Requests that have room beside them. */
  readonly remaining: number;
  /** As in a verdict. */
  readonly resetAt: number;
  readonly resetInMs: number;
}

export interface AnsweredBatch {
  /** What each request came to, in their order. */
  readonly admissions: readonly Admission[];
  /** Of each window that something was wanted of. */
  readonly shares: readonly GrantedPermits[];
}

/** Values in the reply for each request, and for each window that something is wanted of. */
const VALUES = 4;

interface ReplyContext extends Pick<AdmissionBatch, 'suffix' | 'wanted'> {
  /** Of each grant's key, its place among those of grants, from 1. */
  readonly grantIndexes: ReadonlyMap<string, number>;
}

export function readReply(
  reply: unknown,
  requests: readonly AdmissionRequest[],
  { suffix, wanted, grantIndexes }: ReplyContext,
): AnsweredBatch {
  const firstVersion = 1 + VALUES * requests.length;
  const firstShare = firstVersion + grantIndexes.size;
  if (!Array.isArray(reply) || reply.length !== firstShare + VALUES * wanted.length) {
    throw new Error('Redis answered the admission script with no list of its length');
  }
  const admissions = requests.map(({ windows, grantKey }, at) => {
    const index = grantKey === undefined ? undefined : grantIndexes.get(grantKey);
    const grant = index === undefined ? NO_GRANT : readGrant(reply[firstVersion + index - 1]);
    return readAdmission(reply, at, windows, suffix, grant);
  });
  const shares = wanted.map(({ window }, at) =>
    readPermits(reply, firstShare + VALUES * at, window),
  );
  return { admissions, shares };
}

function readAdmission(
  reply: readonly unknown[],
  at: number,
  windows: readonly LimitWindow[],
  suffix: string,
  grant: GrantLookup,
): Admission {
  const first = 1 + VALUES * at;
  const decision = reply[first];
  const session = readSession(reply[first + 3]);
  if (typeof decision !== 'number') {
    const limitFailure = createFailure(decision);
    return { verdict: undefined, entry: undefined, limitFailure, session, grant };
  }
  const window = windows[Math.abs(decision) - 1];
  if (window === undefined) return { verdict: undefined, entry: undefined, session, grant };
  const isAdmitted = decision > 0;
  const now = Number(reply[0]);
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
}

function readPermits(
  reply: readonly unknown[],
  first: number,
  { max, windowMs }: LimitWindow,
): GrantedPermits {
  const resetAt = Number(reply[first + 3]) + windowMs;
  return {
    permits: Number(reply[first]),
    end: String(reply[first + 1]),
    remaining: max - Number(reply[first + 2]),
    resetAt,
    resetInMs: resetAt - Number(reply[0]),
  };
}

/** Redis reads nothing where there is no value. */
function readGrant(version: unknown): GrantLookup {
  if (typeof version === 'string') return version === '' ? NO_GRANT : { version };
  return { failure: createFailure(version) };
}

function readSession(found: unknown): SessionLookup {
  if (typeof found === 'string') {
    return { failure: createFailure(found) };
  }
  if (!Array.isArray(found)) return NO_SESSION;
  try {
    return { record: parseSessionFields(found) };
  } catch (cause) {
    return { failure: createFailure(cause) };
  }
}

const createFailure = (cause: unknown): StoreUnavailable =>
  new StoreUnavailable('Redis could not run a command', { cause });
