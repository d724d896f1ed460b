// §11: requests to admit are collected, and go to Redis many at once: the busier it is, the more of them.

import { randomBytes } from 'node:crypto';
import type { Clock } from '../../platform/clock.ts';
import type { Admission } from '../store.ts';
import type { AdmissionRequest } from './admission-request.ts';
import { runAdmissionScript } from './admission-script.ts';
import { type CommandRunner, DEADLINE_MS } from './command-runner.ts';
import type { Shares } from './shares.ts';

/** Requests with the same `slot` may go together: on a cluster, all of their keys lie in it. */
export type AdmitTogether = (slot: string, request: AdmissionRequest) => Promise<Admission>;

interface PendingAdmission {
  readonly request: AdmissionRequest;
  readonly resolve: (admission: Admission) => void;
  readonly reject: (error: unknown) => void;
}

/** Larger ones save nothing more, and while Redis works on one, the next is collected. */
const MAX_BATCH = 64;

/**
 * Scripts that Redis has not answered. While it is that far behind, requests share the next one: the
 * busier Redis is, the less each of them costs it.
 */
const MAX_SCRIPTS = 4;

/** A script that fails after this time got no answer: what waits behind it would wait as long again. */
const NO_ANSWER_MS = DEADLINE_MS / 2;

/** The requests of one slot. */
interface Queue {
  pending: PendingAdmission[];
  scripts: number;
  isScheduled: boolean;
}

export interface AdmissionBatchesOptions {
  readonly commands: Pick<CommandRunner, 'run'>;
  readonly clock: Clock;
  readonly isCluster: boolean;
  /** `RATE_LIMIT_COUNTING=leased`. */
  readonly shares?: Shares | undefined;
  /** Whether a session slides only where a share of its time is over. */
  readonly slidesRarely?: boolean;
}

/**
 * All requests that one turn of the event loop brings are admitted by one script: what a command costs,
 * here, on the way and in Redis, is paid once for all of them.
 */
export function createAdmissionBatches({
  commands,
  clock,
  isCluster,
  shares,
  slidesRarely = false,
}: AdmissionBatchesOptions): AdmitTogether {
  // Unique over processes and within one: two requests of a millisecond count twice.
  const instance = randomBytes(6).toString('base64url');
  let serial = 0;
  const queues = new Map<string, Queue>();

  function getQueue(slot: string): Queue {
    const known = queues.get(slot);
    if (known !== undefined) return known;
    const queue: Queue = { pending: [], scripts: 0, isScheduled: false };
    queues.set(slot, queue);
    return queue;
  }

  function sendBatches(slot: string, queue: Queue): void {
    queue.isScheduled = false;
    while (queue.pending.length > 0 && queue.scripts < MAX_SCRIPTS) {
      const batch = queue.pending;
      queue.pending = batch.splice(MAX_BATCH);
      queue.scripts += 1;
      void runScript(slot, queue, batch);
    }
    forgetUnused(slot, queue);
  }

  /**
   * Of a cluster's slots there are as many as keys. The one of a single server stays: a Map that is emptied with each script
   * leaves a table behind each time (platform/linked-list.ts).
   */
  function forgetUnused(slot: string, { pending, scripts, isScheduled }: Queue): void {
    if (isCluster && pending.length === 0 && scripts === 0 && !isScheduled) queues.delete(slot);
  }

  async function runScript(
    slot: string,
    queue: Queue,
    batch: readonly PendingAdmission[],
  ): Promise<void> {
    const sentAt = clock.monotonic();
    try {
      await admit(batch);
    } catch (error) {
      const isUnanswered = clock.monotonic() - sentAt >= NO_ANSWER_MS;
      const behind = isUnanswered ? queue.pending.splice(0) : [];
      for (const { reject } of [...batch, ...behind]) reject(error);
    }
    queue.scripts -= 1;
    if (queue.pending.length > 0) sendBatches(slot, queue);
    else forgetUnused(slot, queue);
  }

  async function admit(batch: readonly PendingAdmission[]): Promise<void> {
    const suffix = `${instance}${(serial++).toString(36)}`;
    const requests = batch.map(({ request }) => request);
    const wanted = shares?.ask(requests.flatMap(({ windows }) => windows));
    const options = {
      suffix,
      now: clock.now(),
      slidesRarely,
      isCluster,
      wanted: wanted?.permits ?? [],
    };
    let isSent = false;
    try {
      const { admissions, shares: granted } = await commands.run((client) => {
        isSent = true;
        return runAdmissionScript(client, requests, options);
      });
      wanted?.settle(granted);
      for (const [at, admission] of admissions.entries()) batch[at]?.resolve(admission);
    } catch (error) {
      wanted?.fail(isSent);
      throw error;
    }
  }

  return function admitTogether(slot, request) {
    return new Promise((resolve, reject) => {
      const queue = getQueue(slot);
      queue.pending.push({ request, resolve, reject });
      // When all are under way, the first that is answered makes room for it.
      if (queue.scripts >= MAX_SCRIPTS) return;
      if (queue.pending.length === MAX_BATCH) sendBatches(slot, queue);
      else if (!queue.isScheduled) {
        queue.isScheduled = true;
        // Once all sockets that are ready were read: a request that comes alone does not wait for others.
        setImmediate(sendBatches, slot, queue);
      }
    });
  };
}
