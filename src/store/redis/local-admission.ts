// The part of an answer that a process can give by itself, so that Redis is asked for the rest only: from its shares of the windows
// (RATE_LIMIT_COUNTING=leased), and from the records that it keeps track of (STORE_READS=tracked).
import {
  type Admission,
  type GrantLookup,
  isMissingGrant,
  type LimitWindow,
  NO_GRANT,
  NO_SESSION,
  type SessionAccess,
  type SessionLookup,
  type Windows,
} from '../store.ts';
import { toShareLife } from './leased-permits.ts';
import type { Shares, TakenPermits } from './shares.ts';

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
  const findRecords = (access: SessionAccess | undefined, grantKey: string | undefined) =>
    access === undefined && grantKey === undefined
      ? NOTHING_ASKED
      : records?.find(access, grantKey);

  const take = (windows: readonly LimitWindow[]): TakenPermits =>
    shares?.take(windows) ?? { missing: windows, shares: [], verdict: undefined, entry: undefined };

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
    const found = findRecords(access, grantKey) ?? (await readRecords(access, grantKey));
    return complete(counted, found, counted.limitFailure);
  }

  async function readRecords(
    access: SessionAccess | undefined,
    grantKey: string | undefined,
  ): Promise<KnownRecords> {
    try {
      const found = await admitInRedis([], access, grantKey);
      records?.learn(access, grantKey, found);
      return found;
    } catch (failure) {
      return toFailed(failure);
    }
  }

  /** A request of which all is known here is answered at once: nobody waits for a promise. */
  const admitOnce: AdmitRequest = (windows, access, grantKey) => {
    const known = findRecords(access, grantKey);
    const taken = take(windows);
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

  /** Redis refuses for what this process took meanwhile, too: while some of it is left, the request gets that. */
  async function admitOrRefuse(
    admitting: Promise<Admission>,
    windows: readonly LimitWindow[],
    access: SessionAccess | undefined,
    grantKey: string | undefined,
  ): Promise<Admission> {
    const admission = await admitting;
    const refusing = findRefusing(windows, admission);
    return refusing !== undefined && shares?.hasLeft(refusing)
      ? markRefusal(windows, await admitOnce(windows, access, grantKey))
      : markRefusal(windows, admission);
  }

  return function admitRequest(windows, access, grantKey) {
    const admitting = admitOnce(windows, access, grantKey);
    return admitting instanceof Promise
      ? admitOrRefuse(admitting, windows, access, grantKey)
      : admitting;
  };

  /** Permits that others have taken of the window may come back. */
  function markRefusal(windows: readonly LimitWindow[], admission: Admission): Admission {
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

const findRefusing = (
  windows: readonly LimitWindow[],
  { verdict }: Admission,
): LimitWindow | undefined =>
  verdict?.isAdmitted === false ? windows.find(({ scope }) => scope === verdict.scope) : undefined;
