// §18.3: each replica has processes of its own, and a client's stream may be at another replica than the one that took
// its subscription: what sessions subscribed to is in the store, and what has changed is told to all replicas.

import { computePauseMs } from '../../platform/back-off.ts';
import { createCountedBus } from '../../platform/counted-bus.ts';
import { hashSha256 } from '../../platform/ids.ts';
import { isObject } from '../../platform/json.ts';
import { createBatch } from '../../platform/throttle.ts';
import { buildUpstreamSubscriptionsChannelName } from '../../store/keys.ts';
import { createReplicas } from '../../store/replicas/replicas.ts';
import type { StdioUpstreamConfig } from '../config/upstream-config.ts';
import { createSessionRecords } from '../transport/session-records.ts';
import {
  createSubscriptionMemory,
  hashSession,
  type SubscriptionMemory,
} from '../transport/subscription-memory.ts';
import type { UpstreamRuntime } from '../upstream.ts';

export interface StdioReplicas extends Pick<SubscriptionMemory, 'change' | 'forget'> {
  /** Tells what the session subscribed to at any replica, now and when that changes, until the result is called. */
  watch(sessionId: string, tell: (uris: readonly string[]) => void): () => void;
  /** A process here says that the resource has changed. */
  noteUpdate(keyId: string, uri: string): void;
  close(): void;
}

/** A process of the replica `from` says that a resource has changed; `keyId` says for whom the process is. */
interface UpdateMessage {
  readonly from: string;
  readonly keyId: string;
  readonly uri: string;
}

interface Watcher {
  readonly sessionId: string;
  tell(uris: readonly string[]): void;
}

/** `onUpdate` is told what processes of other replicas say. */
export function createStdioReplicas(
  runtime: UpstreamRuntime,
  { name }: StdioUpstreamConfig,
  onUpdate: (keyId: string, uri: string) => void,
): StdioReplicas {
  const { config, store, getSeal, clock, log, metrics } = runtime;
  const { keyPrefix } = config.mcp.sessions;
  const identity = `stdio ${name} subscriptions`;
  const channel = buildUpstreamSubscriptionsChannelName(keyPrefix, hashSha256(identity));
  /** By the hash of their session's id. */
  const watchers = createCountedBus<string, Watcher>({
    onError: (cause) => log.error('A listener failed; please report this.', { cause }),
  });
  const batches = new Map<string, (uri: string) => void>();
  const memory = createSubscriptionMemory(
    store,
    createSessionRecords(runtime, identity),
    channel,
    (sessionHash) => watchers.publish(sessionHash, (watcher) => void tellSubscriptions(watcher)),
  );
  const replicas = createReplicas<UpdateMessage>({
    store,
    getSeal,
    clock,
    log,
    metrics,
    channel: `${channel}:updates`,
    isMessage: isUpdateMessage,
  });
  replicas.listen(({ from, keyId, uri }) => {
    if (from !== replicas.ownName) onUpdate(keyId, uri);
  });

  const isWatching = (watcher: Watcher): boolean =>
    watchers.topics.get(hashSession(watcher.sessionId))?.listeners.has(watcher) === true;

  /** While the store does not say, what was told before holds. */
  async function tellSubscriptions(watcher: Watcher, failures = 0): Promise<void> {
    const uris = await memory.read(watcher.sessionId).catch(() => undefined);
    if (!isWatching(watcher)) return;
    if (uris === undefined) askAgainLater(watcher, failures + 1);
    else watcher.tell(uris);
  }

  function askAgainLater(watcher: Watcher, failures: number): void {
    clock.after(computePauseMs(BACK_OFF, failures), () => {
      if (isWatching(watcher)) void tellSubscriptions(watcher, failures);
    });
  }

  /** Those of other processes are not kept waiting by one that tells of many. */
  function findBatch(keyId: string): (uri: string) => void {
    if (batches.size >= MAX_BATCHES) batches.clear();
    const batch =
      batches.get(keyId) ??
      createBatch(clock, (uri) => replicas.send({ from: replicas.ownName, keyId, uri }));
    batches.set(keyId, batch);
    return batch;
  }

  return {
    change: memory.change,
    async forget(sessionId) {
      await memory.forget(sessionId);
      await store.publish(channel, hashSession(sessionId));
    },
    watch(sessionId, tell) {
      const watcher = { sessionId, tell };
      const stop = watchers.subscribe(hashSession(sessionId), watcher);
      void tellSubscriptions(watcher);
      return stop;
    },
    noteUpdate: (keyId, uri) => findBatch(keyId)(uri),
    close() {
      watchers.endAll();
      memory.close();
      replicas.close();
    },
  };
}

const BACK_OFF = { firstMs: 1000, longestMs: 30_000 };

/** Of users whose processes told of a resource. */
const MAX_BATCHES = 1000;

const isUpdateMessage = (value: unknown): value is UpdateMessage =>
  isObject(value) &&
  [value.from, value.keyId, value.uri].every((member) => typeof member === 'string');
