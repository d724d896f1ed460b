// §18.3: what clients' sessions subscribed to at a server of processes, at this replica and at others.

import type { Clock } from '../../platform/clock.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { StdioUpstreamConfig } from '../config/upstream-config.ts';
import type { ServerNotification } from '../messages/server-message.ts';
import type { UpstreamCaller, UpstreamRequest } from '../upstream.ts';
import type { Listeners } from './listeners.ts';
import { findOwner, findProcessKey, type ProcessKey } from './process-key.ts';
import type { StdioReplicas } from './replicas.ts';

export interface SessionSubscriptions {
  /** `resources/subscribe`, `resources/unsubscribe`. @throws UpstreamError */
  change(caller: UpstreamCaller, request: UpstreamRequest): Promise<JsonObject>;
  /** Takes up what the session subscribed to at other replicas, until the result is called. */
  watch(caller: UpstreamCaller): (() => void) | undefined;
  /** A process here said something: other replicas hear which resource has changed. */
  tellReplicas(key: ProcessKey, message: ServerNotification): void;
  endSession(caller: UpstreamCaller): Promise<void>;
  close(): void;
}

export interface SessionSubscriptionsDeps {
  readonly clock: Clock;
  readonly listeners: Listeners;
  /** Undefined where no other process shares the store. */
  readonly replicas: StdioReplicas | undefined;
  /** Whether a client's session goes on; never rejects. */
  isSessionActive(sessionId: string): Promise<boolean>;
  /** Resolves when the caller's process runs. */
  wake(caller: UpstreamCaller): Promise<void>;
}

const SWEEP_MS = 900_000;

const METHODS: readonly string[] = ['resources/subscribe', 'resources/unsubscribe'];

export const isSubscription = ({ method }: UpstreamRequest): boolean => METHODS.includes(method);

export function createSessionSubscriptions(
  { isolation }: StdioUpstreamConfig,
  { clock, listeners, replicas, isSessionActive, wake }: SessionSubscriptionsDeps,
): SessionSubscriptions {
  const findSubscriptions = (caller: UpstreamCaller) =>
    listeners.findSubscriptions(findProcessKey(isolation, caller));

  /** What the client's session has subscribed to, at whichever replica. */
  async function takeUp(caller: UpstreamCaller, sessionId: string, uris: readonly string[]) {
    const { replaceAll } = findSubscriptions(caller);
    if (uris.length > 0) await wake(caller);
    replaceAll(sessionId, uris);
  }

  /** Sessions may end without a word: what they subscribed to would be kept for ever. */
  function sweepLater(): void {
    cancelSweep = clock.after(SWEEP_MS, () => {
      sweepLater();
      for (const sessionId of listeners.listSessions()) void forgetIfEnded(sessionId);
    });
  }

  async function forgetIfEnded(sessionId: string): Promise<void> {
    if (!(await isSessionActive(sessionId))) listeners.forgetSession(sessionId);
  }

  let cancelSweep = () => {};
  sweepLater();
  return {
    /** Subscriptions are one for all who share a process. */
    async change(caller, { method, params }) {
      const subscriptions = findSubscriptions(caller);
      const owner = findOwner(caller);
      const uri = String(params.uri);
      const isWanted = method === 'resources/subscribe';
      if (isWanted) await subscriptions.add(owner, uri);
      else subscriptions.remove(owner, uri);
      try {
        await replicas?.change(owner, uri, isWanted);
      } catch (error) {
        subscriptions.remove(owner, uri);
        throw error;
      }
      return {};
    },
    watch(caller) {
      const { sessionId } = caller;
      if (sessionId === undefined) return undefined;
      return replicas?.watch(
        sessionId,
        (uris) => void takeUp(caller, sessionId, uris).catch(() => {}),
      );
    },
    tellReplicas(key, { method, params }) {
      if (method !== 'notifications/resources/updated' || typeof params.uri !== 'string') return;
      if (listeners.hasSubscriptions(key)) replicas?.noteUpdate(key.id, params.uri);
    },
    async endSession({ sessionId }) {
      if (sessionId === undefined) return;
      listeners.forgetSession(sessionId);
      await replicas?.forget(sessionId);
    },
    close() {
      cancelSweep();
      replicas?.close();
    },
  };
}
