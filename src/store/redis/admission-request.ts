// What the admission script is asked, as its arguments.
import type { LimitWindow, SessionAccess } from '../store.ts';
import { encodeOwner } from './session-hash.ts';

/** A request as the script takes it. */
export interface AdmissionRequest {
  readonly windows: readonly LimitWindow[];
  readonly access: SessionAccess | undefined;
  /** Of the hash of `access`. */
  readonly sessionKey: string;
  readonly grantKey?: string | undefined;
}

/** What its requests share. */
export interface AdmissionBatch {
  readonly suffix: string;
  /** Epoch milliseconds. */
  readonly now: number;
  /** Whether a session slides only where a share of its time is over. */
  readonly slidesRarely: boolean;
  readonly isCluster: boolean;
  /** To be taken in advance of windows that the requests count in. */
  readonly wanted: readonly WantedPermits[];
}

export interface WantedPermits {
  readonly window: LimitWindow;
  readonly permits: number;
}

/** Of the script's ARGV for a session: none is asked for, or it is only read; else seconds. */
const NO_ACCESS = -1;
const READ_ONLY = 0;

/** Of the script's ARGV for a request that names no grant; else the index of its key among those of grants. */
const NO_GRANT_INDEX = 0;

/** A key is one window, of one length and maximum: requests that share it, or a grant, name it by its index. */
export function encodeRequests(
  requests: readonly AdmissionRequest[],
  { isCluster, wanted }: AdmissionBatch,
) {
  const windowKeys: string[] = [];
  const limits: number[] = [];
  const indexes = new Map<string, number>();
  const grantIndexes = new Map<string, number>();
  const sessionKeys: string[] = [];
  const args: (string | number)[] = [];
  for (const { windows, access, sessionKey, grantKey } of requests) {
    args.push(grantKey === undefined ? NO_GRANT_INDEX : getGrantIndex(grantKey), windows.length);
    for (const { key, windowMs, max } of windows) {
      let index = indexes.get(key);
      if (index === undefined) {
        index = windowKeys.push(key);
        limits.push(windowMs, max);
        indexes.set(key, index);
      }
      args.push(index);
    }
    if (access === undefined) {
      args.push(NO_ACCESS);
    } else {
      sessionKeys.push(sessionKey);
      args.push(access.slideSeconds ?? READ_ONLY, ...encodeOwner(access.owner));
    }
  }
  return {
    keys: [...windowKeys, ...grantIndexes.keys(), ...sessionKeys],
    args: [
      windowKeys.length,
      grantIndexes.size,
      isCluster ? 1 : 0,
      wanted.length,
      ...limits,
      ...wanted.flatMap(({ window, permits }) => [indexes.get(window.key) ?? 0, permits]),
      ...args,
    ],
    grantIndexes,
  };

  function getGrantIndex(key: string): number {
    const index = grantIndexes.get(key) ?? grantIndexes.size + 1;
    grantIndexes.set(key, index);
    return index;
  }
}
