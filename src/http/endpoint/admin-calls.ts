// §22.8: the calls of the last day, on any replica, for operators: who called what, and how it ended. Never arguments or results.

import { randomUUID } from 'node:crypto';
import { isObject, parseObject } from '../../platform/json.ts';
import { createWarnThrottle } from '../../platform/throttle.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { buildCallsKey, CALLS_LIST_KEY } from '../../store/keys.ts';
import type { PagePlace } from '../../store/page.ts';
import type { AuditOutcome } from '../../telemetry/audit/audit.ts';

/** A call that has ended. Members from callers are at most 200 characters long. */
export interface ListedCall {
  /** The end of the call in epoch milliseconds. */
  readonly at: number;
  readonly user: string | undefined;
  readonly issuer: string | undefined;
  /** The client ID, if known. */
  readonly client: string | undefined;
  /** Undefined for the gateway's own items. */
  readonly server: string | undefined;
  readonly kind: 'tool' | 'prompt' | 'resource';
  /** As called; of a URI without what may be secret. */
  readonly name: string | undefined;
  /** As in the audit log. */
  readonly outcome: AuditOutcome;
  readonly reason: string | undefined;
  /** Milliseconds. */
  readonly ms: number;
  /** Of the response, unless it is a stream. Set later than the rest: when the response is written. */
  bytes: number | undefined;
}

const TTL_SECONDS = 86_400;
/** A process fills one batch after the other, and writes the one that it fills at most once a second. */
const WRITE_PAUSE_MS = 1000;
const BATCH_CALLS = 50;
/** 10,000 calls in all. */
const MAX_BATCHES = 200;
/** Of one process between two writes. Those beyond would push each other out within seconds. */
const MAX_WAITING = 1000;
/** Batches that are deleted at once, beyond the maximum. */
const TRIMMED = 100;
const READ_AT_ONCE = 20;
/** Later than any entry: the start of the list. */
const AFTER_ALL = Number.MAX_SAFE_INTEGER;

export type CallList = ReturnType<typeof createCallList>;

export function createCallList({ store, clock, log }: Pick<Runtime, 'store' | 'clock' | 'log'>) {
  let waiting: ListedCall[] = [];
  let batch = startBatch();
  let cancel: (() => void) | undefined;
  let writing = Promise.resolve();
  const warn = createWarnThrottle(clock, (cause: unknown) =>
    log.warn("Some calls are missing on the operators' page: the store did not take them.", {
      cause,
    }),
  );

  async function writeBatch() {
    await store.setListed(CALLS_LIST_KEY, batch.key, JSON.stringify(batch.calls), TTL_SECONDS);
    if (batch.calls.length < BATCH_CALLS) return;
    batch = startBatch();
    const from = { time: AFTER_ALL, skip: MAX_BATCHES };
    const { items } = await store.readListed(CALLS_LIST_KEY, { from, limit: TRIMMED });
    for (const { key } of items) await store.deleteListed(CALLS_LIST_KEY, key);
  }

  async function write() {
    const calls = waiting;
    waiting = [];
    while (calls.length > 0) {
      batch.calls.push(...calls.splice(0, BATCH_CALLS - batch.calls.length));
      await writeBatch();
    }
  }

  function writeNow() {
    cancel?.();
    cancel = undefined;
    writing = writing.then(write).catch((cause: unknown) => {
      batch = startBatch();
      warn(cause);
    });
    return writing;
  }

  return {
    /** Returns immediately: calls are written in the background. */
    add(call: ListedCall): void {
      if (waiting.length >= MAX_WAITING) return;
      waiting.push(call);
      cancel ??= clock.after(WRITE_PAUSE_MS, writeNow);
    },
    /** Writes what waits. */
    close: writeNow,
    /** The calls that `isMeant` accepts, the last one first. */
    async list(
      { from, limit }: { readonly from: PagePlace | undefined; readonly limit: number },
      isMeant: (call: ListedCall) => boolean,
    ) {
      const since = clock.now() - TTL_SECONDS * 1000;
      const isShown = (call: ListedCall) =>
        call.at > since && (from === undefined || call.at <= from.time) && isMeant(call);
      let found: ListedCall[] = [];
      // One more than the page shows that there is another.
      const enough = (from?.skip ?? 0) + limit + 1;
      let place: PagePlace | undefined;
      do {
        const page = await store.readListed(CALLS_LIST_KEY, { from: place, limit: READ_AT_ONCE });
        found.push(...page.items.flatMap(({ value }) => readCalls(value)).filter(isShown));
        found.sort((one, other) => other.at - one.at);
        place = page.next;
        // Batches are listed by their last write. All calls of the next ones ended before the last write of this one.
        const writtenAt = (page.items.at(-1)?.expiresAt ?? 0) - TTL_SECONDS * 1000;
        if ((found[enough - 1]?.at ?? 0) >= writtenAt) place = undefined;
      } while (place !== undefined);
      found = found.slice(from?.skip ?? 0);
      const items = found.slice(0, limit);
      return { items, next: found.length > limit ? findPlace(items, from) : undefined };
    },
  };
}

function startBatch() {
  const calls: ListedCall[] = [];
  return { key: buildCallsKey(randomUUID()), calls };
}

/** After the last of these calls, and those before it that ended at the same time. */
function findPlace(shown: readonly ListedCall[], from: PagePlace | undefined) {
  const time = shown.at(-1)?.at ?? 0;
  const ofSameTime = shown.filter(({ at }) => at === time).length;
  return { time, skip: ofSameTime + (from?.time === time ? from.skip : 0) };
}

function readCalls(text: string): readonly ListedCall[] {
  const { calls } = parseObject(`{"calls":${text}}`) ?? {};
  return Array.isArray(calls) ? calls.filter(isListedCall) : [];
}

const isListedCall = (call: unknown): call is ListedCall =>
  isObject(call) && typeof call.at === 'number' && typeof call.outcome === 'string';
