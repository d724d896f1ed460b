// §29: who hears that a task has changed, at whatever replica. What is lost on the way is found by looking.
import { createSecondTimer } from '../../platform/clock.ts';
import { isObject } from '../../platform/json.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { Replicas } from '../../store/replicas/replicas.ts';

/** To all replicas: the record under this key is another. */
export interface TaskMessage {
  readonly about: 'changed';
  readonly key: string;
}

export const isTaskMessage = (value: unknown): value is TaskMessage =>
  isObject(value) && value.about === 'changed' && typeof value.key === 'string';

export interface TaskChanges {
  announce(key: string): void;
  /** Called now and then without a change, too. */
  listen(key: string, listener: () => void): () => void;
}

/** Messages from replica to replica may be lost. */
const LOOK_MS = 5000;

export function createTaskChanges(
  { clock, log }: Runtime,
  replicas: Replicas<TaskMessage>,
): TaskChanges {
  const listeners = new Map<string, Set<() => void>>();

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

  return {
    announce(key) {
      replicas.send({ about: 'changed', key }).catch((cause: unknown) => {
        log.debug('Other replicas could not be told that a task has changed.', { cause });
      });
    },
    listen(key, listener) {
      const known = listeners.get(key) ?? new Set();
      listeners.set(key, known.add(listener));
      startSweeping();
      return () => {
        known.delete(listener);
        if (known.size === 0 && listeners.get(key) === known) listeners.delete(key);
      };
    },
  };
}
