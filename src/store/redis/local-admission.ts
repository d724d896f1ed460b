// What a process can say of a request by itself, so that Redis is asked for the rest only: of its shares of the windows
// (RATE_LIMIT_COUNTING=leased), and of the records that it keeps track of (STORE_READS=tracked).
import {
  type Admission,
  type GrantLookup,
  isMissingGrant,
  type LimitWindow,
  NO_GRANT,
  NO_SESSION,
  type SessionAccess,
  type SessionLookup,
  type Verdict,
  type Windows,
} from '../store.ts';

export type AdmitRequest = Windows['admitRequest'];

/** What this process may let in without asking. */
export interface Shares {
  /** One request of each of the windows, or of none: undefined where one of them has nothing left here. */
  take(windows: readonly LimitWindow[]): Verdict | undefined;
  /** What was taken last of each of the windows was not needed. */
  giveBack(windows: readonly LimitWindow[]): void;
}

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

export interface LocalAdmissionOptions {
  /** Asks Redis. */
  readonly admitInRedis: AdmitRequest;
  /** Undefined where each request is counted by itself. */
  readonly shares: Shares | undefined;
  /** Undefined where each request reads what it needs. */
  readonly records: TrackedRecords | undefined;
}

/** Stands for a request that a share let in, for `uncountRequest`. */
export const SHARED_ENTRY = 'shared';

const NOTHING_ASKED: KnownRecords = { session: NO_SESSION, grant: NO_GRANT };

export function createLocalAdmission({
  admitInRedis,
  shares,
  records,
}: LocalAdmissionOptions): AdmitRequest {
  if (shares === undefined && records === undefined) return admitInRedis;

  /** Where nothing is asked for, that is known. */
  const findRecords = (access: SessionAccess | undefined, grantKey: string | undefined) =>
    access === undefined && grantKey === undefined
      ? NOTHING_ASKED
      : records?.find(access, grantKey);

  async function askForRecords(
    windows: readonly LimitWindow[],
    verdict: Verdict,
    access: SessionAccess | undefined,
    grantKey: string | undefined,
  ): Promise<Admission> {
    const { session, grant } = await readRecords(access, grantKey);
    // Where there is no grant, nothing is counted.
    if (grantKey !== undefined && isMissingGrant(grant)) {
      shares?.giveBack(windows);
      return { verdict: undefined, entry: undefined, session, grant };
    }
    return { verdict, entry: SHARED_ENTRY, session, grant };
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
      return { session: { failure }, grant: { failure } };
    }
  }

  /** What is known may have changed while Redis counted. */
  async function countOnly(
    windows: readonly LimitWindow[],
    access: SessionAccess | undefined,
    grantKey: string | undefined,
  ): Promise<Admission> {
    const counted = await admitInRedis(windows, undefined);
    if (counted.verdict?.isAdmitted === false) return counted;
    const { session, grant } =
      findRecords(access, grantKey) ?? (await readRecords(access, grantKey));
    return { ...counted, session, grant };
  }

  return async function admitRequest(windows, access, grantKey) {
    const known = findRecords(access, grantKey);
    const verdict = windows.length === 0 ? undefined : shares?.take(windows);
    const isCounted = windows.length === 0 || verdict !== undefined;
    if (known !== undefined && isCounted) {
      return { verdict, entry: verdict && SHARED_ENTRY, ...known };
    }
    if (known !== undefined) return countOnly(windows, access, grantKey);
    if (verdict !== undefined) return askForRecords(windows, verdict, access, grantKey);
    const admission = await admitInRedis(windows, access, grantKey);
    records?.learn(access, grantKey, admission);
    return admission;
  };
}
