// §18.3: who is told what changes at the processes of a server, and of which resources: at this replica and at others.

import type {
  UpstreamCaller,
  UpstreamListener,
  UpstreamRequest,
  UpstreamRuntime,
} from '../../mcp/upstream/upstream.ts';
import {
  createChangeListeners,
  readChange,
  type ServerChange,
  type ServerNotification,
} from '../messages/server-message.ts';
import type { ProcessShare } from '../transport/process-share.ts';
import { SUBSCRIBING } from '../transport/session-records.ts';
import {
  findOwner,
  findProcessKey,
  GATEWAY_KEY,
  type ProcessKey,
  type RunningServer,
} from './server-run.ts';
import type { StdioUpstreamConfig } from './stdio-config.ts';
import { createStdioReplicas, createSubscriptions, type Subscriptions } from './subscriptions.ts';

interface Listening {
  readonly sessionId: string | undefined;
  readonly listener: UpstreamListener;
}

/** Everything that is known of a key's process, whether it runs or not. */
interface Room {
  readonly subscriptions: Subscriptions;
  /** True if there ever was a process. */
  wasConnected: boolean;
}

/** Rooms; with so many it is worth looking for empty ones. */
const MANY = 100;
const SWEEP_MS = 900_000;

/** `wake` resolves when the caller's process runs. */
export function createProgramListeners(
  runtime: UpstreamRuntime,
  config: StdioUpstreamConfig,
  { isSessionActive, hasReplicas }: ProcessShare,
  wake: (caller: UpstreamCaller) => Promise<void>,
) {
  const { clock, log } = runtime;
  const { name, isolation } = config;
  const rooms = new Map<string, Room>();
  /** Keyed by the id of their process's key. */
  const {
    bus: listening,
    tell: tellAll,
    tellMissed,
  } = createChangeListeners<Listening>({ onError }, isWanted);
  /** Ends the watch over sessions that have subscriptions here, with or without a stream. */
  const held = new Map<string, () => void>();
  const replicas = hasReplicas
    ? createStdioReplicas(runtime, config, (keyId, uri) => tell(keyId, { kind: 'resource', uri }))
    : undefined;

  function onError(cause: unknown): void {
    log.error('A listener failed; please report this.', { server: name, cause });
  }

  function findRoom({ id }: ProcessKey): Room {
    dropEmpty();
    const room = rooms.get(id) ?? {
      subscriptions: createSubscriptions(onError),
      wasConnected: false,
    };
    rooms.set(id, room);
    return room;
  }

  function dropEmpty(): void {
    if (rooms.size < MANY) return;
    for (const [id, { subscriptions }] of rooms) {
      const isUsed = subscriptions.isConnected || subscriptions.count > 0;
      if (!isUsed && !listening.topics.has(id)) rooms.delete(id);
    }
  }

  const findSubscriptions = (caller: UpstreamCaller): Subscriptions =>
    findRoom(findProcessKey(isolation, caller)).subscriptions;

  const hasSubscriptions = ({ id }: Pick<ProcessKey, 'id'>): boolean =>
    (rooms.get(id)?.subscriptions.count ?? 0) > 0;

  function tell(keyId: string, change: ServerChange): void {
    // A process that all share could ask nobody.
    if (change.kind !== 'elicitation' || keyId !== GATEWAY_KEY.id) tellAll(keyId, change);
  }

  function isWanted(keyId: string, entry: Listening, uri: string): boolean {
    const subscriptions = rooms.get(keyId)?.subscriptions;
    const owners = entry.sessionId === undefined ? [entry] : [entry, entry.sessionId];
    return owners.some((owner) => subscriptions?.isWanted(owner, uri) === true);
  }

  /** Takes up the subscriptions of the client's session, at whichever replica: also where there is no process just now. */
  async function takeUp(caller: UpstreamCaller, sessionId: string, uris: readonly string[]) {
    const { replaceAll } = findSubscriptions(caller);
    replaceAll(sessionId, uris);
    if (uris.length > 0) {
      hold(caller, sessionId);
      await wake(caller);
    } else release(sessionId);
  }

  const watch = (caller: UpstreamCaller, sessionId: string): (() => void) | undefined =>
    replicas?.watch(sessionId, (uris) => void takeUp(caller, sessionId, uris).catch(() => {}));

  /** Elsewhere it may unsubscribe, or end. */
  function hold(caller: UpstreamCaller, sessionId: string): void {
    const stopWatching = held.has(sessionId) ? undefined : watch(caller, sessionId);
    if (stopWatching !== undefined) held.set(sessionId, stopWatching);
  }

  function release(sessionId: string): void {
    held.get(sessionId)?.();
    held.delete(sessionId);
  }

  function forgetSession(sessionId: string): void {
    release(sessionId);
    for (const { subscriptions } of rooms.values()) subscriptions.removeAll(sessionId);
  }

  /** Sessions may end without a word: what they subscribed to would be kept for ever. */
  function sweepLater(): void {
    cancelSweep = clock.after(SWEEP_MS, () => {
      sweepLater();
      const subscribed = [...rooms.values()].flatMap(({ subscriptions }) =>
        subscriptions.listSessions(),
      );
      for (const sessionId of new Set([...held.keys(), ...subscribed])) {
        void forgetIfEnded(sessionId);
      }
    });
  }

  async function forgetIfEnded(sessionId: string): Promise<void> {
    if (!(await isSessionActive(sessionId))) forgetSession(sessionId);
  }

  let cancelSweep = () => {};
  sweepLater();
  return {
    /** Until the result is called. */
    listen(caller: UpstreamCaller, listener: UpstreamListener, uris: readonly string[]) {
      const { sessionId } = caller;
      const subscriptions = findSubscriptions(caller);
      const entry = { sessionId, listener };
      const stop = listening.subscribe(findProcessKey(isolation, caller).id, entry);
      // Resources that the server does not agree to are not told of.
      for (const uri of uris) subscriptions.add(entry, uri).catch(() => {});
      // Starts a process where none runs: it alone can tell of changes.
      if (uris.length > 0) wake(caller).catch(() => {});
      const stopWatching = sessionId === undefined ? undefined : watch(caller, sessionId);
      return () => {
        stop();
        subscriptions.removeAll(entry);
        stopWatching?.();
      };
    },
    /** Subscriptions are one for all who share a process. */
    /** `resources/subscribe`, `resources/unsubscribe`. @throws UpstreamError */
    async changeSubscription(caller: UpstreamCaller, { method, params }: UpstreamRequest) {
      const subscriptions = findSubscriptions(caller);
      const owner = findOwner(caller);
      const uri = String(params.uri);
      const isSubscribed = SUBSCRIBING.get(method) === true;
      if (isSubscribed) await subscriptions.add(owner, uri);
      else subscriptions.remove(owner, uri);
      try {
        await replicas?.change(owner, uri, isSubscribed);
        if (isSubscribed && caller.sessionId !== undefined) hold(caller, caller.sessionId);
      } catch (error) {
        subscriptions.remove(owner, uri);
        throw error;
      }
      return {};
    },
    /** A notification of the key's process that belongs to no request. */
    notify(key: ProcessKey, message: ServerNotification) {
      const change = readChange(message);
      if (change === undefined) return;
      tell(key.id, change);
      if (change.kind === 'resource' && hasSubscriptions(key)) {
        replicas?.noteUpdate(key.id, change.uri);
      }
    },
    /** The key's process has started. */
    connect(key: ProcessKey, running: RunningServer, timeoutMs: number) {
      const room = findRoom(key);
      const { wasConnected } = room;
      room.wasConnected = true;
      room.subscriptions.connect(running, timeoutMs);
      // Changes while no process was there were missed.
      if (wasConnected) tellMissed(key.id, running.description);
    },
    disconnect: ({ id }: ProcessKey) => rooms.get(id)?.subscriptions.disconnect(),
    /** True if somebody subscribed to a resource of the key's process. */
    hasSubscriptions,
    async endSession({ sessionId }: UpstreamCaller) {
      if (sessionId === undefined) return;
      forgetSession(sessionId);
      await replicas?.forget(sessionId);
    },
    close() {
      cancelSweep();
      replicas?.close();
    },
  };
}
