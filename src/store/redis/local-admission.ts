// The part of an answer that a process can give by itself, so that Redis is asked for the rest only: from its shares of the windows
// (RATE_LIMIT_COUNTING=leased), and from the records that it keeps track of (STORE_READS=tracked).

import type { Redis } from 'ioredis';
import { createBoundedMap } from '../../platform/bounded-map.ts';
import { type Clock, type Moment, measureSince, takeMoment } from '../../platform/clock.ts';
import { buildSessionKey } from '../keys.ts';
import { isOwnedBy } from '../owner.ts';
import {
  type Admission,
  GRANT_VERSION_LENGTH,
  type GrantLookup,
  isMissingGrant,
  type LimitWindow,
  NO_GRANT,
  NO_SESSION,
  type SessionAccess,
  type SessionLookup,
  type SessionRecord,
  type Windows,
} from '../store.ts';
import type { RedisAccess } from './command-runner.ts';
import { toShareLife } from './leased-permits.ts';
import { isSlideDue, SESSION_FIELDS, tryParseSession } from './sessions.ts';
import type { Shares, TakenPermits } from './shares.ts';
import { createTracking } from './tracking.ts';

export type AdmitRequest = Windows['admitRequest'];

/** Session and grant as this process knows them. */
export interface KnownRecords {
  readonly session: SessionLookup;
  readonly grant: GrantLookup;
}

/** Records that Redis says changes of. */
export interface TrackedRecords {
  /** Undefined where Redis has to be asked: one of them is not known for certain at this moment, or the session is to slide. */
  find(access: SessionAccess | undefined, grantKey: string | undefined): KnownRecords | undefined;
  /** Redis has been asked for them: what was found there is to be known from now on. Nobody waits for it. */
  learn(access: SessionAccess | undefined, grantKey: string | undefined, found: KnownRecords): void;
}

const toMissing = (missing: readonly LimitWindow[]): TakenPermits => ({
  missing,
  shares: [],
  verdict: undefined,
  entry: undefined,
});

const toFailed = (failure: unknown): KnownRecords => ({ session: { failure }, grant: { failure } });

const NOTHING_ASKED: KnownRecords = { session: NO_SESSION, grant: NO_GRANT };

/** Without shares each request is counted by itself, and without records it reads what it needs. */
export function createLocalAdmission(
  admitInRedis: AdmitRequest,
  shares: Shares | undefined,
  records: TrackedRecords | undefined,
): AdmitRequest {
  if (shares === undefined && records === undefined) return admitInRedis;

  /** If nothing is asked for, that is known. */
  const findRecords: TrackedRecords['find'] = (access, grantKey) =>
    access === undefined && grantKey === undefined
      ? NOTHING_ASKED
      : records?.find(access, grantKey);

  /** A request of which all is known here is answered at once: nobody waits for a promise. */
  const admitOnce: AdmitRequest = (windows, access, grantKey) => {
    const known = findRecords(access, grantKey);
    const taken = shares?.take(windows) ?? toMissing(windows);
    return known !== undefined && taken.missing.length === 0
      ? complete(taken, known)
      : askRedis(taken, access, grantKey, known);
  };

  /** Redis counts in the windows that are left, and tells what is not known. */
  async function askRedis(
    taken: TakenPermits,
    access: SessionAccess | undefined,
    grantKey: string | undefined,
    known: KnownRecords | undefined,
  ): Promise<Admission> {
    const { missing, verdict } = taken;
    const isCounted = missing.length === 0;
    let admission: Admission;
    try {
      admission = await (known === undefined
        ? admitInRedis(missing, access, grantKey)
        : countOnly(missing, access, grantKey, known));
    } catch (failure) {
      if (verdict !== undefined && isCounted) return complete(taken, toFailed(failure));
      shares?.giveBack(taken);
      throw failure;
    }
    if (known === undefined) records?.learn(access, grantKey, admission);
    // Without a grant nothing is counted.
    const isLetIn = isCounted
      ? grantKey === undefined || !isMissingGrant(admission.grant)
      : admission.verdict?.isAdmitted === true;
    if (!isLetIn) shares?.giveBack(taken);
    if (!isLetIn || verdict === undefined) return admission;
    return complete(taken, admission, admission.limitFailure);
  }

  /** Known records may have changed while Redis counted. */
  async function countOnly(
    windows: readonly LimitWindow[],
    access: SessionAccess | undefined,
    grantKey: string | undefined,
    { grant: knownGrant }: KnownRecords,
  ): Promise<Admission> {
    const counted = await admitInRedis(windows, undefined);
    // A grant that was not asked for reads like one that has ended.
    if (counted.verdict?.isAdmitted === false) return { ...counted, grant: knownGrant };
    let found = findRecords(access, grantKey);
    try {
      if (found === undefined) {
        found = await admitInRedis([], access, grantKey);
        records?.learn(access, grantKey, found);
      }
    } catch (failure) {
      found = toFailed(failure);
    }
    return complete(counted, found, counted.limitFailure);
  }

  return function admitRequest(windows, access, grantKey) {
    const admitting = admitOnce(windows, access, grantKey);
    return admitting instanceof Promise
      ? admitOrRefuse(admitting, [windows, access, grantKey])
      : admitting;
  };

  /** Redis refuses for what this process took meanwhile, too: while some of it is left, the request gets that. */
  async function admitOrRefuse(admitting: Promise<Admission>, asked: Parameters<AdmitRequest>) {
    const [windows] = asked;
    const admission = await admitting;
    const refusing = findRefusing(windows, admission);
    return refusing !== undefined && shares?.hasLeft(refusing)
      ? markRefusal(windows, await admitOnce(...asked))
      : markRefusal(windows, admission);
  }

  /** Permits that others have taken of the window may come back. */
  function markRefusal(windows: readonly LimitWindow[], admission: Admission) {
    const { verdict } = admission;
    const refusing = findRefusing(windows, admission);
    if (shares === undefined || verdict === undefined || refusing === undefined) return admission;
    return { ...admission, verdict: { ...verdict, holdsForMs: toShareLife(refusing.windowMs) } };
  }
}

/** Made by literals, as other admissions are, so that all have one shape (docs/decisions/0024). */
const complete = (
  { verdict, entry }: Pick<Admission, 'verdict' | 'entry'>,
  { session, grant }: KnownRecords,
  limitFailure?: unknown,
): Admission =>
  limitFailure === undefined
    ? { verdict, entry, session, grant }
    : { verdict, entry, limitFailure, session, grant };

const findRefusing = (windows: readonly LimitWindow[], { verdict }: Admission) =>
  verdict?.isAdmitted === false ? windows.find(({ scope }) => scope === verdict.scope) : undefined;

// STORE_READS=tracked: sessions and versions of grants that this process has read, until Redis says that they have changed.
// Only what is there is remembered: what is missing, damaged or somebody else's is asked for each time.

/** Reads that have not been answered. */
const MAX_PENDING = 1000;

export function createTrackedRecords(commandClient: Redis, redis: RedisAccess) {
  const { sessionKeyPrefix, clock } = redis;
  const sessions = createBoundedMap<string, Known<{ readonly record: SessionRecord }>>(
    'trackedRecords',
  );
  const grants = createBoundedMap<string, Known<GrantLookup>>('trackedRecords');
  /**
   * The reads under way, by key. Its answer counts only if nothing has changed meanwhile: the two connections tell of that in
   * no order.
   */
  const pending = new Map<string, PendingRead>();
  let unsent: PendingRead[] = [];

  function forget(key: string) {
    sessions.delete(key);
    grants.delete(key);
    pending.delete(key);
  }

  const tracking = createTracking(commandClient, redis, forget, () => {
    sessions.clear();
    grants.clear();
    pending.clear();
  });

  function findSession({ sessionId, owner, slideSeconds }: SessionAccess) {
    const key = buildSessionKey(sessionKeyPrefix, sessionId);
    const found = sessions.get(key);
    if (found === undefined) return undefined;
    const leftMs = measureLeft(found, clock);
    if (leftMs <= 0 || (slideSeconds !== undefined && isSlideDue(leftMs, slideSeconds))) {
      // The step that slides it says what stands there then.
      forget(key);
      return undefined;
    }
    return isOwnedBy(found.value.record, owner) ? found.value : undefined;
  }

  function findGrant(key: string) {
    const found = grants.get(key);
    if (found === undefined || measureLeft(found, clock) > 0) return found?.value;
    // Redis may still have it, by its own clock.
    forget(key);
    return undefined;
  }

  function read(kind: PendingRead['kind'], key: string) {
    const known = kind === 'session' ? sessions : grants;
    if (known.peek(key) !== undefined || pending.has(key) || pending.size >= MAX_PENDING) return;
    const wanted = { kind, key };
    pending.set(key, wanted);
    // Once all that this turn brings is known: one way to Redis for all of it.
    if (unsent.push(wanted) === 1) setImmediate(sendReads);
  }

  function sendReads() {
    const isPending = (wanted: PendingRead) => pending.get(wanted.key) === wanted;
    const reads = unsent.filter(isPending);
    unsent = [];
    const pipeline = tracking.getReader()?.pipeline();
    if (pipeline === undefined || reads.length === 0) return;
    for (const { kind, key } of reads) {
      if (kind === 'session') pipeline.hmget(key, ...SESSION_FIELDS);
      else pipeline.getrange(key, 0, GRANT_VERSION_LENGTH - 1);
      pipeline.pttl(key);
    }
    const readAt = takeMoment(clock);
    const answered = pipeline.exec().catch(() => null);
    void answered.then((answers) => {
      for (const [at, wanted] of reads.entries()) {
        if (!isPending(wanted)) continue;
        pending.delete(wanted.key);
        const leftMs = Number(answers?.[2 * at + 1]?.[1] ?? 0);
        if (leftMs > 0) keep(wanted, answers?.[2 * at]?.[1], { leftMs, readAt });
      }
    });
  }

  function keep({ kind, key }: PendingRead, answer: unknown, lifetime: Lifetime) {
    if (kind === 'session') {
      const record = tryParseSession(answer);
      if (record !== undefined) sessions.set(key, { value: { record }, ...lifetime });
    } else if (typeof answer === 'string' && answer !== '') {
      grants.set(key, { value: { version: answer }, ...lifetime });
    }
  }

  const records: TrackedRecords = {
    find(access, grantKey) {
      if (!tracking.isCertain()) return undefined;
      const session = access === undefined ? NO_SESSION : findSession(access);
      const grant = grantKey === undefined ? NO_GRANT : findGrant(grantKey);
      return session && grant && { session, grant };
    },
    learn(access, grantKey, { session, grant }) {
      if (tracking.getReader() === undefined) return;
      if (access !== undefined && 'record' in session && session.record !== undefined)
        read('session', buildSessionKey(sessionKeyPrefix, access.sessionId));
      if (grantKey !== undefined && 'version' in grant && grant.version !== undefined)
        read('grant', grantKey);
    },
  };
  /** `forget`: this process changes what stands under the key. */
  return { ...records, forget, close: tracking.close };
}

/** The time that something lives, from before it was asked for: no longer here than there. */
interface Lifetime {
  readonly leftMs: number;
  readonly readAt: Moment;
}

interface Known<Value> extends Lifetime {
  readonly value: Value;
}

interface PendingRead {
  readonly kind: 'session' | 'grant';
  readonly key: string;
}

const measureLeft = ({ leftMs, readAt }: Lifetime, clock: Clock) =>
  leftMs - measureSince(readAt, clock);
