// §29: tasks that run on this replica, and its heartbeat.

import { fail, failInternal, GatewayError } from '../../errors/gateway-error.ts';
import type { UserContext } from '../../http/endpoint/message.ts';
import { toJsonRpcError } from '../../http/endpoint/render-error.ts';
import type { CancelSignal } from '../../platform/cancellation.ts';
import { computePauseMs, createSecondTimer, pause } from '../../platform/clock.ts';
import { writeExactJson } from '../../platform/exact-json.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import { toRawJson } from '../../platform/noted-json.ts';
import { waitForOutcome } from '../../platform/single-flight.ts';
import { createThrottle } from '../../platform/throttle.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { buildTaskReplicaKey, nameOwner } from '../../store/keys.ts';
import type { Replicas } from '../../store/replicas/replicas.ts';
import type { Question } from '../calls/guards.ts';
import { omit } from '../catalog/client-requests.ts';
import { createUserCounts } from '../streaming/notification-streams.ts';
import { type Answer, toFailedAnswer } from '../streaming/response-stream.ts';
import type { TaskEnd, TaskRecord, TaskRecords } from './task-records.ts';

/** Time to live of a replica's heartbeat, which is sent more than three times within it. */
const LIFE_SECONDS = 60;
const SIGN_MS = 15_000;

/** `ownName` is the name of this replica. */
export function createTaskRuns(
  runtime: Runtime,
  records: TaskRecords,
  changes: TaskChanges,
  ownName: string,
) {
  const { config, store, clock, log } = runtime;
  const { keyPrefix } = config.mcp.sessions;
  /** `task` is undefined until its record is written. */
  const running = new Map<string, { task: RunningTask | undefined; abort(): void }>();
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

  async function sign() {
    const now = clock.monotonic();
    await store.set(ownKey, '1', LIFE_SECONDS);
    signedAt = now;
  }

  return {
    /** @throws GatewayError `store_unavailable` if the store is unavailable. */
    async start(task: Omit<NewTask, 'onOver'>): Promise<RunningTask> {
      const { key } = task;
      running.set(key, { task: undefined, abort: task.abort });
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
        failInternal(cause);
      }
      const started = createRunningTask(runtime, { ...task, onOver }, records, changes);
      running.set(key, { task: started, abort: task.abort });
      stopListening = changes.listen(key, () => void started.look());
      startSweeping();
      return started;
    },
    /** True while the replica with this name runs the task. @throws if the store is unavailable. */
    async isRunning(key: string, replica: string): Promise<boolean> {
      if (replica === ownName) return running.has(key);
      return (await store.get(buildTaskReplicaKey(keyPrefix, replica))) !== undefined;
    },
    /** Drains for `graceMs`, then ends the rest. */
    async close(graceMs: number): Promise<void> {
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

// One running task: its record carries status and requests to the client, and the client's answers back.

export type RunningTask = ReturnType<typeof createRunningTask>;

interface NewTask {
  readonly key: string;
  readonly user: string | undefined;
  readonly record: TaskRecord;
  /** The signal of its call. */
  readonly signal: CancelSignal;
  /** Ends its work. */
  abort(): void;
  /** Called when it has ended. */
  onOver(): void;
}

/** Debounce of progress, in milliseconds. */
const NOTE_INTERVAL_MS = 500;
/** Maximum length of a status message, in characters. */
const MAX_NOTE = 1000;
/** Maximum size of a result as JSON, in bytes. */
const MAX_RESULT_BYTES = 4 * 1_048_576;
/** Retries of a result while the store is down. */
const WRITE_AGAIN = { firstMs: 500, longestMs: 30_000 };

function createRunningTask(
  { clock, log }: Runtime,
  task: NewTask,
  records: TaskRecords,
  changes: TaskChanges,
) {
  const { key, user, record: first, signal, abort } = task;
  const expiresAt = first.createdAt + first.ttlMs;
  let statusMessage: string | undefined;
  let ending: Promise<void> | undefined;

  const update = (change: (record: TaskRecord) => TaskRecord): Promise<TaskRecord | undefined> =>
    records.update(key, (record) =>
      record.end === undefined ? { ...change(record), updatedAt: clock.now() } : undefined,
    );

  const writeNote = createThrottle<'note'>(clock, NOTE_INTERVAL_MS, () => {
    if (ending !== undefined) return;
    update((record) => ({ ...record, statusMessage })).then(
      () => changes.announce(key),
      (cause: unknown) => log.debug('What a task is doing could not be written.', { cause }),
    );
  });

  async function leave() {
    task.onOver();
    await records.releaseRun(key, user).catch((cause: unknown) => {
      log.debug('A task that is over counts until its time is over.', { cause });
    });
  }

  async function write(answer: Answer) {
    const kept = await toKept(answer);
    const end: TaskEnd =
      'error' in kept
        ? { status: 'failed', error: toJsonRpcError(kept.error) }
        : { status: 'completed', result: kept.result };
    for (let failures = 1; clock.now() < expiresAt + first.ttlMs; failures += 1) {
      try {
        await update((record) => ({
          ...record,
          statusMessage:
            'error' in kept ? kept.error.message.slice(0, MAX_NOTE) : record.statusMessage,
          questions: {},
          answers: {},
          // The result is kept for as long as the task could have run.
          ttlMs: clock.now() - record.createdAt + first.ttlMs,
          end,
        }));
        changes.announce(key);
        break;
      } catch (cause) {
        if (failures === 1)
          log.warn('The end of a task could not be written to the store; it is tried again.', {
            cause,
          });
        await pause(clock, computePauseMs(WRITE_AGAIN, failures));
      }
    }
    await leave();
  }

  /** The error for a result that cannot be stored. One that cannot be serialized is a failure of the tool. */
  async function toKept(answer: Answer): Promise<Answer> {
    if ('error' in answer) return answer;
    let bytes: number;
    try {
      bytes = Buffer.byteLength(writeExactJson(toRawJson(answer.result)));
    } catch (cause) {
      return toFailedAnswer(cause);
    }
    if (bytes > MAX_RESULT_BYTES)
      return tooLarge(`It has ${bytes} bytes as JSON; ${MAX_RESULT_BYTES} are allowed.`);
    return (await records.reserveResult(key, user, bytes).catch(() => true))
      ? answer
      : tooLarge('Too many results are kept already, of this user or of all. Try again later.');
  }

  return {
    /** Sets the status message. */
    note(text: string): void {
      if (ending !== undefined) return;
      statusMessage = text.slice(0, MAX_NOTE);
      writeNote('note');
    },
    /** Resolves to the client's answers, by the keys of the requests. @throws GatewayError if the task ends first. */
    async ask(questions: Readonly<Record<string, Question>>): Promise<JsonObject> {
      await update((record) => ({ ...record, questions: { ...record.questions, ...questions } }));
      changes.announce(key);
      const keys = Object.keys(questions);
      const answers = await waitForOutcome<JsonObject | 'over'>({
        async look() {
          const record = await records.read(key);
          if (record === undefined || record.end !== undefined) return 'over';
          const isAnswered = keys.every((name) => Object.hasOwn(record.answers, name));
          return isAnswered ? record.answers : undefined;
        },
        listen: (check) => changes.listen(key, check),
        late: 'over',
        waitMs: expiresAt - clock.now(),
        signal,
        clock,
      });
      if (answers === 'over') return fail('request_cancelled');
      // Each answer is consumed once.
      update((record) => ({ ...record, answers: omit(record.answers, questions) })).catch(
        (cause: unknown) => {
          log.debug('The answers to what a task has asked stay in the store until it ends.', {
            cause,
          });
        },
      );
      return answers;
    },
    /** Resolves once the end is written. Idempotent: the first end counts. */
    end(answer: Answer): Promise<void> {
      ending ??= write(answer);
      return ending;
    },
    /** Checks if another replica or its time to live has ended it. */
    async look(): Promise<void> {
      if (ending !== undefined) return;
      if (clock.now() >= expiresAt) {
        ending = write({ error: new GatewayError('task_expired') });
        abort();
        return ending;
      }
      const record = await records.read(key).catch(() => first);
      if (ending !== undefined || (record !== undefined && record.end === undefined)) return;
      // Another replica ended it: cancelled by the client, or considered lost.
      ending = Promise.resolve();
      abort();
      void leave();
    },
  };
}

const tooLarge = (why: string): Answer => ({
  error: new GatewayError('task_result_too_large', {
    details: `The task has finished, but its result is too large to be stored. ${why}`,
  }),
});

// §29: change notifications of tasks, across replicas. Polling finds changes whose message was lost.

/** To all replicas: the record of this key has changed. */
interface TaskMessage {
  readonly about: 'changed';
  readonly key: string;
}

export const isTaskMessage = (value: unknown): value is TaskMessage =>
  isObject(value) && value.about === 'changed' && typeof value.key === 'string';

/** Messages from replica to replica may be lost. */
const LOOK_MS = 5000;

type TaskChanges = ReturnType<typeof createTaskChanges>;

export function createTaskChanges({ clock, log }: Runtime, replicas: Replicas<TaskMessage>) {
  const listeners = new Map<string, Set<() => void>>();
  const watched = createUserCounts(MAX_WATCHED.user, MAX_WATCHED.all);

  const tell = (key: string) => {
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

  /** Also called periodically, without a change. */
  function listen(key: string, listener: () => void) {
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
     * §29.3, ext-tasks "Task Status Notifications": sends the task now and after each change; returns the function that stops
     * it.
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
      async function look() {
        // An unreadable task is skipped: until the next change, or for good.
        const task = await read().catch(() => undefined);
        const { pollIntervalMs: _, ...state } = task ?? {};
        const text = writeExactJson(state);
        if (task === undefined || text === told || isOver) return;
        told = text;
        tellClient(task);
      }
      /** One read at a time; a change during it causes one more. */
      function lookInOrder() {
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
     * Counts this many watched tasks of the user, until the returned function is called.
     *
     * @throws GatewayError `too_many_streams`
     */
    reserveWatches(user: UserContext | undefined, count: number): () => void {
      const name = user && nameOwner(user);
      if (!watched.hasRoom(name, count))
        fail('too_many_streams', {
          details: `Of one user ${MAX_WATCHED.user} tasks may be listened to at once, and ${MAX_WATCHED.all} of all.`,
        });
      let isReserved = true;
      watched.count(name, count);
      return function release() {
        if (isReserved) watched.count(name, -count);
        isReserved = false;
      };
    },
  };
}

/** Watched tasks of one user, and of all: each is polled every few seconds, at its server if it is relayed. */
const MAX_WATCHED = { user: 200, all: 8192 };
