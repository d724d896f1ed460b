// §29: tells who listens to a task that it has changed, at whatever replica. What is lost on the way is found by looking.

import { fail } from '../../errors/gateway-error.ts';
import type { UserContext } from '../../http/endpoint/message.ts';
import { createSecondTimer } from '../../platform/clock.ts';
import { writeExactJson } from '../../platform/exact-json.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { nameOwner } from '../../store/owner.ts';
import type { Replicas } from '../../store/replicas/replicas.ts';
import { createUserCounts } from '../streaming/notification-streams.ts';

/** To all replicas: the record under this key is another. */
interface TaskMessage {
  readonly about: 'changed';
  readonly key: string;
}

export const isTaskMessage = (value: unknown): value is TaskMessage =>
  isObject(value) && value.about === 'changed' && typeof value.key === 'string';

/** Messages from replica to replica may be lost. */
const LOOK_MS = 5000;

export type TaskChanges = ReturnType<typeof createTaskChanges>;

export function createTaskChanges({ clock, log }: Runtime, replicas: Replicas<TaskMessage>) {
  const listeners = new Map<string, Set<() => void>>();
  const watched = createUserCounts(MAX_WATCHED.user, MAX_WATCHED.all);

  const tell = (key: string): void => {
    for (const listener of listeners.get(key) ?? []) listener();
  };
  replicas.listen(({ key }) => tell(key));

  let lookedAt = clock.monotonic();
  const startSweeping = createSecondTimer(clock, {
    isNeeded: () => listeners.size > 0,
    task() {
      if (clock.monotonic() - lookedAt < LOOK_MS) return;
      lookedAt = clock.monotonic();
      for (const key of listeners.keys()) tell(key);
    },
  });

  /** Called now and then without a change, too. */
  function listen(key: string, listener: () => void): () => void {
    const known = listeners.get(key) ?? new Set();
    listeners.set(key, known.add(listener));
    startSweeping();
    return () => {
      known.delete(listener);
      if (known.size === 0 && listeners.get(key) === known) listeners.delete(key);
    };
  }

  return {
    announce(key: string): void {
      replicas.send({ about: 'changed', key }).catch((cause: unknown) => {
        log.debug('Other replicas could not be told that a task has changed.', { cause });
      });
    },
    listen,
    /**
     * §29.3, ext-tasks "Task Status Notifications": tells what the task is, and each time that it has become another; returns
     * what ends it.
     */
    watch(
      key: string,
      read: () => Promise<JsonObject>,
      tellClient: (task: JsonObject) => void,
    ): () => void {
      let told = '';
      let isOver = false;
      let isLooking = false;
      let hasChanged = false;
      async function look(): Promise<void> {
        // A task that can be read no longer, or not now, is told no longer, or later.
        const task = await read().catch(() => undefined);
        const { pollIntervalMs: _, ...state } = task ?? {};
        const text = writeExactJson(state);
        if (task === undefined || text === told || isOver) return;
        told = text;
        tellClient(task);
      }
      /** One look at a time; what changes meanwhile is looked at once more. */
      function lookInOrder(): void {
        hasChanged = isLooking;
        if (isLooking) return;
        isLooking = true;
        void look().finally(() => {
          isLooking = false;
          if (hasChanged) lookInOrder();
        });
      }
      const stopListening = listen(key, lookInOrder);
      lookInOrder();
      return () => {
        isOver = true;
        stopListening();
      };
    },
    /**
     * Counts so many tasks as watched for their user, until what it returns is called.
     *
     * @throws GatewayError `too_many_streams`
     */
    reserveWatches(user: UserContext | undefined, count: number): () => void {
      const name = user && nameOwner(user);
      if (!watched.hasRoom(name, count)) {
        fail('too_many_streams', {
          details: `Of one user ${MAX_WATCHED.user} tasks may be listened to at once, and ${MAX_WATCHED.all} of all.`,
        });
      }
      let isReserved = true;
      watched.count(name, count);
      return function release() {
        if (isReserved) watched.count(name, -count);
        isReserved = false;
      };
    },
  };
}

/** Each is looked at every few seconds, those of servers at their server: of one user, and in all. */
const MAX_WATCHED = { user: 200, all: 8192 };
