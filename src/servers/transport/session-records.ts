// Records of sessions at servers in the store: sealed, and readable only by the replicas.

import {
  INVALID_PARAMS,
  nameOwnSession,
  type UpstreamCaller,
  UpstreamError,
  type UpstreamRequest,
  type UpstreamRuntime,
} from '../../mcp/upstream/upstream.ts';
import { createAttempts } from '../../platform/clock.ts';
import { createCountedBus } from '../../platform/counted-bus.ts';
import { hashSha256 } from '../../platform/ids.ts';
import { isObject, isStringArray, parseObject } from '../../platform/json.ts';
import { createBatch } from '../../platform/throttle.ts';
import {
  buildUpstreamSessionKey,
  buildUpstreamSubscriptionsChannelName,
} from '../../store/keys.ts';
import { createRecords, textFormat } from '../../store/records.ts';
import { createReplicas } from '../../store/replicas/replicas.ts';
import type { Bus } from '../../store/store.ts';
import { pauseAfter } from './process-share.ts';

export type ServerSessionRecords = ReturnType<typeof createSessionRecords>;

/** Records outlive the client's session. */
const AN_HOUR_SECONDS = 3600;

/**
 * The records of one server; `identity` identifies the server, since a record must never reach a different one. Each method throws
 * StoreUnavailable if the store is unavailable, except for optional records (`isOptional`). These then count as absent, and each
 * replica has its own session at the server, which is less convenient but fails no call.
 */
export function createSessionRecords(
  { config, store, log, getSeal }: UpstreamRuntime,
  identity: string,
  isOptional = false,
) {
  const { keyPrefix, ttlSeconds: sessionTtlSeconds } = config.mcp.sessions;
  const ttlSeconds = sessionTtlSeconds + AN_HOUR_SECONDS;
  const records = createRecords(store, textFormat, getSeal);
  const hash = hashSha256(identity);
  const buildKey = (sessionId: string) => buildUpstreamSessionKey(keyPrefix, sessionId, hash);

  async function attempt<Value>(work: Promise<Value>, otherwise: Value): Promise<Value> {
    try {
      return await work;
    } catch (cause) {
      if (!isOptional) throw cause;
      log.warn('A session at an MCP server is not shared with other replicas now', { cause });
      return otherwise;
    }
  }

  return {
    /** Undefined if there is no record. */
    read: (sessionId: string) => attempt(records.get(buildKey(sessionId)), undefined),
    /** Resolves to the record that is stored afterwards: another replica may have written its own first. */
    readOrWrite: (sessionId: string, text: string) =>
      attempt(records.create(buildKey(sessionId), text, ttlSeconds), text),
    /**
     * Writes the result of `change`, if there is one. `change` is called again if another replica has changed the record
     * in the meantime. Resolves to its last result.
     */
    update: (sessionId: string, change: (text: string | undefined) => string | undefined) =>
      attempt(
        records.update(buildKey(sessionId), (standing) => {
          const text = change(standing);
          return text === undefined
            ? { result: undefined }
            : { value: text, ttlSeconds, result: text };
        }),
        undefined,
      ),
    take: (sessionId: string) => attempt(records.take(buildKey(sessionId)), undefined),
  };
}

// Resources at a server that clients' sessions have subscribed to: kept in the store, so that any replica can subscribe to them
// again.

/** Each method throws StoreUnavailable if the store is unavailable: that does not mean that there are no subscriptions. */
export type SubscriptionMemory = ReturnType<typeof createSubscriptionMemory>;

/** Maximum number per session and server, so that no session locks out others. */
export const MAX_SUBSCRIPTIONS = 200;

/** @throws UpstreamError always. */
export function failTooMany(): never {
  const message = `A session can subscribe to at most ${MAX_SUBSCRIPTIONS} resources.`;
  throw new UpstreamError('error', 'too many subscriptions', {
    jsonRpcError: { code: INVALID_PARAMS, message },
  });
}

export const hashSession = (sessionId: string): string => hashSha256(`subscriptions ${sessionId}`);

/** `onChange` is called on each replica, with a hash of the session's ID. */
export function createSubscriptionMemory(
  store: Bus,
  records: ServerSessionRecords,
  channel: string,
  onChange: (sessionHash: string) => void,
) {
  /** Changes to one session are applied one after another. */
  const changing = new Map<string, Promise<void>>();
  let unsubscribe: (() => void) | undefined;

  async function write(sessionId: string, uri: string, isWanted: boolean) {
    let isTooMany = false;
    await records.update(sessionId, (text) => {
      const others = parseUris(text).filter((other) => other !== uri);
      const uris = isWanted ? [...others, uri] : others;
      isTooMany = uris.length > MAX_SUBSCRIPTIONS;
      return isTooMany ? undefined : JSON.stringify({ uris });
    });
    if (isTooMany) failTooMany();
  }

  async function note(sessionId: string, uri: string, isWanted: boolean) {
    const before = changing.get(sessionId) ?? Promise.resolve();
    const change = before.catch(() => {}).then(() => write(sessionId, uri, isWanted));
    changing.set(sessionId, change);
    try {
      await change;
    } finally {
      if (changing.get(sessionId) === change) changing.delete(sessionId);
    }
  }

  return {
    async read(sessionId: string) {
      // From now on a stream depends on these subscriptions.
      unsubscribe ??= store.subscribe(channel, onChange);
      // The session is alive, so its subscriptions are kept: renews their time to live.
      const kept = await records.update(sessionId, (text) =>
        parseUris(text).length > 0 ? text : undefined,
      );
      return parseUris(kept);
    },
    /** @throws UpstreamError if the session has too many. */
    note,
    /** Like `note`, and publishes the change to all replicas. */
    async change(sessionId: string, uri: string, isWanted: boolean) {
      await note(sessionId, uri, isWanted);
      await store.publish(channel, hashSession(sessionId));
    },
    forget: async (sessionId: string) => void (await records.take(sessionId)),
    close: () => unsubscribe?.(),
  };
}

function parseUris(text: string | undefined) {
  const { uris } = parseObject(text ?? '') ?? {};
  return isStringArray(uris) ? uris : [];
}

/** A change made by a request of a client's session. */
export interface SubscriptionChange {
  readonly sessionId: string;
  readonly uri: string;
  readonly isWanted: boolean;
}

/** Undefined for any other request. */
export function readSubscriptionChange(
  caller: UpstreamCaller,
  { method, params: { uri } }: UpstreamRequest,
): SubscriptionChange | undefined {
  const isWanted = SUBSCRIBING.get(method);
  if (isWanted === undefined || typeof uri !== 'string') return undefined;
  const sessionId = nameOwnSession(caller);
  return sessionId === undefined ? undefined : { sessionId, uri, isWanted };
}

/** The requests that change subscriptions; true for those that begin one. */
export const SUBSCRIBING: ReadonlyMap<string, boolean> = new Map([
  ['resources/subscribe', true],
  ['resources/unsubscribe', false],
]);

// §18.3: each replica has its own processes, and a client's stream may be on a different replica from the one that accepted its
// subscription: subscriptions of sessions are in the store, and changes are published to all replicas.

/** Reports that a resource has changed, according to a process of the replica `from`; `keyId` names the owner of the process. */
interface UpdateMessage {
  readonly from: string;
  readonly keyId: string;
  readonly uri: string;
}

interface Watcher {
  readonly sessionId: string;
  readonly attempts: ReturnType<typeof createAttempts>;
  tell(uris: readonly string[]): void;
}

/** `onUpdate` receives updates from processes of other replicas. */
export function createStdioReplicas(
  runtime: UpstreamRuntime,
  name: string,
  onUpdate: (keyId: string, uri: string) => void,
) {
  const { config, store, clock, log } = runtime;
  const { keyPrefix } = config.mcp.sessions;
  const identity = `stdio ${name} subscriptions`;
  const channel = buildUpstreamSubscriptionsChannelName(keyPrefix, hashSha256(identity));
  /** Keyed by the hash of the session's ID. */
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
  const replicas = createReplicas<UpdateMessage>(runtime, `${channel}:updates`, isUpdateMessage);
  replicas.listen(({ from, keyId, uri }) => {
    if (from !== replicas.ownName) onUpdate(keyId, uri);
  });

  const isWatching = (watcher: Watcher) =>
    watchers.topics.get(hashSession(watcher.sessionId))?.listeners.has(watcher) === true;

  /** Fails open: while the store is unavailable, the previous subscriptions stay. */
  async function tellSubscriptions(watcher: Watcher) {
    const { sessionId, attempts, tell } = watcher;
    const uris = await memory.read(sessionId).catch(() => undefined);
    if (!isWatching(watcher)) return;
    if (uris === undefined) {
      attempts.again(() => {
        if (isWatching(watcher)) void tellSubscriptions(watcher);
      });
      return;
    }
    attempts.noteSuccess();
    tell(uris);
  }

  return {
    change: memory.change,
    async forget(sessionId: string) {
      await memory.forget(sessionId);
      await store.publish(channel, hashSession(sessionId));
    },
    /** Reports the session's subscriptions on all replicas, now and when they change, until the returned function is called. */
    watch(sessionId: string, tell: Watcher['tell']) {
      const attempts = createAttempts(clock, pauseAfter);
      const watcher = { sessionId, attempts, tell };
      const stop = watchers.subscribe(hashSession(sessionId), watcher);
      void tellSubscriptions(watcher);
      return () => {
        stop();
        attempts.stop();
      };
    },
    /**
     * Publishes that the resource has changed, according to a process here. A process that reports many changes does not delay
     * those of others.
     */
    noteUpdate(keyId: string, uri: string) {
      if (batches.size >= MAX_BATCHES) batches.clear();
      const batch =
        batches.get(keyId) ??
        createBatch(clock, (one) => replicas.send({ from: replicas.ownName, keyId, uri: one }));
      batches.set(keyId, batch);
      batch(uri);
    },
    close() {
      watchers.endAll();
      memory.close();
      replicas.close();
    },
  };
}

/** Maximum number of owners whose processes have updated a resource. */
const MAX_BATCHES = 1000;

const isUpdateMessage = (value: unknown): value is UpdateMessage =>
  isObject(value) &&
  [value.from, value.keyId, value.uri].every((member) => typeof member === 'string');
