// §8, §11: requests are counted, and their sessions read and slid, on one server and on a cluster.
import type { Clock } from '../../clock.ts';
import { buildSessionKey } from '../keys.ts';
import { type Admission, type LimitWindow, NO_SESSION, type Store } from '../store.ts';
import { createAdmissionBatches } from './admission-batches.ts';
import type { CommandRunner } from './command-runner.ts';

export interface AdmitRequestOptions {
  readonly commands: CommandRunner;
  readonly sessionKeyPrefix: string;
  readonly clock: Clock;
}

type AdmitRequest = Store['admitRequest'];

/** One script over all windows and the session. */
export function createServerAdmission(options: AdmitRequestOptions): AdmitRequest {
  const { commands, sessionKeyPrefix, clock } = options;
  const admitTogether = createAdmissionBatches(commands, clock);

  return (windows, access) => {
    const sessionKey =
      access === undefined ? '' : buildSessionKey(sessionKeyPrefix, access.sessionId);
    return admitTogether('', { windows, access, sessionKey });
  };
}

/**
 * The keys lie in different slots: one script per window, in order; a later refusal takes the
 * earlier entries back. The session comes last, when all windows have admitted, or failed: it may be
 * on a node that answers.
 */
export function createClusterAdmission(options: AdmitRequestOptions): AdmitRequest {
  const { commands, sessionKeyPrefix, clock } = options;
  const admitTogether = createAdmissionBatches(commands, clock);

  return async function admitRequest(windows, access) {
    const counted = await countInAll(windows).catch(toLimitFailure);
    if (access === undefined || counted.verdict?.isAdmitted === false) return counted;
    const sessionKey = buildSessionKey(sessionKeyPrefix, access.sessionId);
    try {
      const { session } = await admitTogether(sessionKey, { windows: [], access, sessionKey });
      return { ...counted, session };
    } catch (failure) {
      if (counted.limitFailure !== undefined) throw failure;
      return { ...counted, session: { failure } };
    }
  };

  /** @throws StoreUnavailable, or what else failed of a window. */
  async function countInAll(windows: readonly LimitWindow[]): Promise<Admission> {
    let first = NOT_COUNTED;
    const earlier: { readonly key: string; readonly entry: string | undefined }[] = [];
    for (const window of windows) {
      const request = { windows: [window], access: undefined, sessionKey: '' };
      const counted = await admitTogether(window.key, request);
      if (counted.limitFailure !== undefined) throw counted.limitFailure;
      if (counted.verdict?.isAdmitted === false) {
        await Promise.all(earlier.map(({ key, entry }) => uncount(key, entry)));
        return counted;
      }
      if (earlier.length === 0) first = counted;
      earlier.push({ key: window.key, entry: counted.entry });
    }
    return first;
  }

  async function uncount(key: string, entry = ''): Promise<void> {
    await commands.run((client) => client.zrem(key, entry)).catch(() => 0);
  }
}

const NOT_COUNTED: Admission = { verdict: undefined, entry: undefined, session: NO_SESSION };

const toLimitFailure = (limitFailure: unknown): Admission => ({ ...NOT_COUNTED, limitFailure });
