// §29: the tasks that run at this replica, and the signs by which other replicas know that it is there.

import { GatewayError } from '../../errors/gateway-error.ts';
import { createSecondTimer, pause } from '../../platform/clock.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { buildTaskReplicaKey } from '../../store/keys.ts';
import { createRunningTask, type NewTask, type RunningTask } from './running-task.ts';
import type { TaskChanges } from './task-changes.ts';
import type { TaskRecords } from './task-records.ts';

export interface TaskRuns {
  /** @throws GatewayError `internal_error` where the store does not answer. */
  start(task: Omit<NewTask, 'onOver'>): Promise<RunningTask>;
  /** Whether a task runs that the replica of this name began. @throws where the store does not answer. */
  isRunning(key: string, replica: string): Promise<boolean>;
  /** Lets them end for so long; those that do not are ended. */
  close(graceMs: number): Promise<void>;
}

/** So long nobody looks at a replica that says nothing; it says something three times meanwhile, and more. */
const LIFE_SECONDS = 60;
const SIGN_MS = 15_000;

/** `ownName` is that of this replica. */
export function createTaskRuns(
  runtime: Runtime,
  records: TaskRecords,
  changes: TaskChanges,
  ownName: string,
): TaskRuns {
  const { config, store, clock, log } = runtime;
  const { keyPrefix } = config.mcp.sessions;
  const running = new Map<string, RunningEntry>();
  const ownKey = buildTaskReplicaKey(keyPrefix, ownName);
  let signedAt = Number.NEGATIVE_INFINITY;
  let tellIdle = () => {};

  const startSweeping = createSecondTimer(clock, {
    isNeeded: () => running.size > 0,
    task() {
      if (clock.monotonic() - signedAt < SIGN_MS) return;
      sign().catch((cause: unknown) => {
        log.debug('The sign of life of this replica could not be written.', { cause });
      });
    },
  });

  async function sign(): Promise<void> {
    const now = clock.monotonic();
    await store.set(ownKey, '1', LIFE_SECONDS);
    signedAt = now;
  }

  return {
    async start(task) {
      const { key } = task;
      const entry: RunningEntry = { task: undefined, abort: task.abort };
      running.set(key, entry);
      const onOver = () => {
        stopListening();
        running.delete(key);
        if (running.size === 0) tellIdle();
      };
      let stopListening = () => {};
      try {
        if (clock.monotonic() - signedAt >= SIGN_MS) await sign();
        await records.create(key, task.record);
      } catch (cause) {
        onOver();
        throw cause instanceof GatewayError ? cause : new GatewayError('internal_error', { cause });
      }
      const started = createRunningTask(runtime, { ...task, onOver }, records, changes);
      entry.task = started;
      stopListening = changes.listen(key, () => void started.look());
      startSweeping();
      return started;
    },
    async isRunning(key, replica) {
      if (replica === ownName) return running.has(key);
      return (await store.get(buildTaskReplicaKey(keyPrefix, replica))) !== undefined;
    },
    async close(graceMs) {
      if (running.size === 0) return;
      const idle = new Promise<void>((resolve) => {
        tellIdle = resolve;
      });
      await Promise.race([idle, pause(clock, graceMs)]);
      await Promise.all(
        [...running.values()].map(async ({ task, abort }) => {
          const ended = task?.end({ error: new GatewayError('task_lost') });
          abort();
          await ended;
        }),
      );
    },
  };
}

interface RunningEntry {
  /** Undefined until its record is written. */
  task: RunningTask | undefined;
  readonly abort: () => void;
}
