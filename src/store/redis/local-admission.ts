// Admits requests in this process as far as possible, and queries Redis only for the rest: from its shares of the windows
// (RATE_LIMIT_COUNTING=leased), and from the records that it tracks (STORE_READS=tracked).

import type { Redis } from 'ioredis';
import { createBoundedMap } from '../../platform/bounded-map.ts';
import { type Clock, type Moment, measureSince, takeMoment } from '../../platform/clock.ts';
import { buildSessionKey, isOwnedBy } from '../keys.ts';
import {
  type Admission,
  GRANT_VERSION_LENGTH,
  type GrantLookup,
  isMissingGrant,
  type LimitWindow,
  NO_GRANT,
  NO_SESSION,
  type SessionAccess,
  type SessionRecord,
  type Windows,
} from '../store.ts';
import type { AdmissionRequest } from './admission-request.ts';
import type { RedisAccess } from './command-runner.ts';
import { toShareLife } from './leased-permits.ts';
import { isSlideDue, SESSION_FIELDS, tryParseSession } from './sessions.ts';
import type { Shares, TakenPermits } from './shares.ts';
import { createTracking } from './tracking.ts';

export type AdmitInRedis = (request: AdmissionRequest) => Promise<Admission>;

/** The session and the grant of a request. */
type WantedRecords = Pick<AdmissionRequest, 'access' | 'grantKey'>;

/** Session and grant as this process knows them. */
type KnownRecords = Pick<Admission, 'session' | 'grant'>;

/** Records of which Redis reports changes. */
export interface TrackedRecords {
  /** Undefined if Redis has to be queried: a record is not certain at this moment, or the session is to slide. */
  find(wanted: WantedRecords): KnownRecords | undefined;
  /** Tracks records that were requested from Redis, in the background. */
  learn(wanted: WantedRecords, found: KnownRecords): void;
}

const toMissing = (missing: readonly LimitWindow[]): TakenPermits => ({
  missing,
  shares: [],
  verdict: undefined,
  entry: undefined,
});

const toFailed = (failure: unknown): KnownRecords => ({ session: { failure }, grant: { failure } });

const NOTHING_ASKED: KnownRecords = { session: NO_SESSION, grant: NO_GRANT };

/** Without shares Redis counts each request, and without tracked records it reads the records of each. */
export function createLocalAdmission(
  admitInRedis: AdmitInRedis,
  shares: Shares | undefined,
  records: TrackedRecords | undefined,
): Windows['admitRequest'] {
  if (shares === undefined && records === undefined)
    return (windows, access, grantKey) => admitInRedis({ windows, access, grantKey });

  const findRecords = (wanted: WantedRecords) =>
    wanted.access === undefined && wanted.grantKey === undefined
      ? NOTHING_ASKED
      : records?.find(wanted);

  const takePermits = (windows: readonly LimitWindow[]) =>
    shares?.take(windows) ?? toMissing(windows);

  /** Undefined if Redis has to be queried. */
  const admitHere = (taken: TakenPermits, known: KnownRecords | undefined) =>
    known !== undefined && taken.missing.length === 0 ? complete(taken, known) : undefined;

  /** Makes Redis count in the remaining windows, and read unknown records. */
  async function askRedis(
    taken: TakenPermits,
    request: AdmissionRequest,
    known: KnownRecords | undefined,
  ): Promise<Admission> {
    const { missing, verdict } = taken;
    const isCounted = missing.length === 0;
    let admission: Admission;
    try {
      admission = await (known === undefined
        ? admitInRedis({ ...request, windows: missing })
        : countOnly(missing, request, known));
    } catch (failure) {
      if (verdict !== undefined && isCounted) return complete(taken, toFailed(failure));
      shares?.giveBack(taken);
      throw failure;
    }
    if (known === undefined) records?.learn(request, admission);
    // Without a grant nothing is counted.
    const isLetIn = isCounted
      ? request.grantKey === undefined || !isMissingGrant(admission.grant)
      : admission.verdict?.isAdmitted === true;
    if (!isLetIn) shares?.giveBack(taken);
    if (!isLetIn || verdict === undefined) return admission;
    return complete(taken, admission, admission.limitFailure);
  }

  /** Known records may have changed while Redis counted. */
  async function countOnly(
    windows: readonly LimitWindow[],
    wanted: WantedRecords,
    { grant: knownGrant }: KnownRecords,
  ): Promise<Admission> {
    const counted = await admitInRedis({ windows, access: undefined });
    // A grant that was not requested reads like one that has ended.
    if (counted.verdict?.isAdmitted === false) return { ...counted, grant: knownGrant };
    let found = findRecords(wanted);
    try {
      if (found === undefined) {
        found = await admitInRedis({ ...wanted, windows: [] });
        records?.learn(wanted, found);
      }
    } catch (failure) {
      found = toFailed(failure);
    }
    return complete(counted, found, counted.limitFailure);
  }

  return function admitRequest(windows, access, grantKey) {
    const request = { windows, access, grantKey };
    const known = findRecords(request);
    const taken = takePermits(windows);
    return admitHere(taken, known) ?? admitOrRefuse(askRedis(taken, request, known), request);
  };

  /** Redis also refuses because of permits that this process took in the meantime: while some are left, the request gets one. */
  async function admitOrRefuse(asking: Promise<Admission>, request: AdmissionRequest) {
    const { windows } = request;
    const admission = await asking;
    const refusing = findRefusing(windows, admission);
    if (refusing === undefined || !shares?.hasLeft(refusing))
      return markRefusal(windows, admission);
    const known = findRecords(request);
    const taken = takePermits(windows);
    const second = admitHere(taken, known) ?? (await askRedis(taken, request, known));
    return markRefusal(windows, second);
  }

  /** Permits that others have taken of the window may come back. */
  function markRefusal(windows: readonly LimitWindow[], admission: Admission) {
    const { verdict } = admission;
    const refusing = findRefusing(windows, admission);
    if (shares === undefined || verdict === undefined || refusing === undefined) return admission;
    return { ...admission, verdict: { ...verdict, holdsForMs: toShareLife(refusing.windowMs) } };
  }
}

/** Creates admissions by literals, so that all have one hidden class (docs/decisions/0024). */
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

// STORE_READS=tracked: sessions and versions of grants that this process has read, until Redis reports a change. Records that
// are missing, damaged or of another owner are not remembered.

/** Maximum number of reads in flight. */
const MAX_PENDING = 1000;

export function createTrackedRecords(commandClient: Redis, redis: RedisAccess) {
  const { sessionKeyPrefix, clock } = redis;
  const sessions = createBoundedMap<string, Known<{ readonly record: SessionRecord }>>(
    'trackedRecords',
  );
  const grants = createBoundedMap<string, Known<GrantLookup>>('trackedRecords');
  /**
   * Reads in flight, by key. An answer counts only if no change was reported in the meantime: the two connections have no common
   * order.
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
      // The step that slides the session reads it again.
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
    // Runs after all ready sockets have been read: one pipeline for all of them.
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
    find({ access, grantKey }) {
      if (!tracking.isCertain()) return undefined;
      const session = access === undefined ? NO_SESSION : findSession(access);
      const grant = grantKey === undefined ? NO_GRANT : findGrant(grantKey);
      return session && grant && { session, grant };
    },
    learn({ access, grantKey }, { session, grant }) {
      if (tracking.getReader() === undefined) return;
      if (access !== undefined && 'record' in session && session.record !== undefined)
        read('session', buildSessionKey(sessionKeyPrefix, access.sessionId));
      if (grantKey !== undefined && 'version' in grant && grant.version !== undefined)
        read('grant', grantKey);
    },
  };
  /** `forget`: call it when this process changes the value of a key. */
  return { ...records, forget, close: tracking.close };
}

/** The time to live of a record, measured from before it was read: no longer here than in Redis. */
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
