// §29: tasks in the store, sealed, each under the hash of its id, its user and its path: nobody else's look finds it. And
// how much of them there is.

import { fail } from '../../errors/gateway-error.ts';
import { hashSha256 } from '../../platform/ids.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { type Budget, releaseInAll, reserveInAll } from '../../store/budgets.ts';
import { buildTaskBudgetKey, buildTaskKey } from '../../store/keys.ts';
import { MIN_ENTRY_BYTES } from '../../store/store.ts';
import { readRecord, type TaskRecord, writeRecord } from './task-record.ts';

export interface TaskOwner {
  readonly id: string;
  /** As `nameOwner` has it; undefined without authentication. */
  readonly user: string | undefined;
  /** The server or view at whose path it was called; undefined for `/mcp`. */
  readonly path: string | undefined;
}

export type TaskRecords = ReturnType<typeof createTaskRecords>;

/** All methods reject with GatewayError `internal_error` where the store does not answer. */
export function createTaskRecords({ config, store, getSeal, clock }: Runtime) {
  const { keyPrefix } = config.mcp.sessions;
  const { taskTtlSeconds: ttlSeconds, maxTasksPerUser } = config.mcp.tasks;
  const running = createRunningBudget(keyPrefix, maxTasksPerUser);
  const listKeptBudgets = createKeptBudgets(keyPrefix);

  const open = async (key: string, sealed: string | undefined): Promise<TaskRecord | undefined> => {
    const text = sealed === undefined ? undefined : (await getSeal()).open(key, sealed);
    return text === undefined ? undefined : readRecord(text);
  };

  const seal = async (key: string, record: TaskRecord): Promise<string> =>
    (await getSeal()).seal(key, writeRecord(record));

  const countSecondsLeft = ({ createdAt, ttlMs, end }: TaskRecord): number =>
    Math.max(1, Math.ceil((createdAt + ttlMs - clock.now()) / 1000)) +
    (end === undefined ? OVERTIME_SECONDS : 0);

  return {
    buildKey: ({ id, user, path }: TaskOwner): string =>
      buildTaskKey(keyPrefix, hashSha256(JSON.stringify([id, user ?? null, path ?? null]))),
    create: (key: string, record: TaskRecord): Promise<void> =>
      orInternalError(async () =>
        store.set(key, await seal(key, record), countSecondsLeft(record)),
      ),
    read: (key: string): Promise<TaskRecord | undefined> =>
      orInternalError(async () => open(key, await store.get(key))),
    /**
     * Writes what `change` makes of it, nothing where it makes nothing. Called again where another replica has changed it
     * meanwhile. Resolves to what stands there then; undefined where nothing does.
     */
    update: (
      key: string,
      change: (record: TaskRecord) => TaskRecord | undefined,
    ): Promise<TaskRecord | undefined> =>
      orInternalError(async () => {
        for (;;) {
          const standing = await store.get(key);
          const record = await open(key, standing);
          const changed = record && change(record);
          if (changed === undefined) return record;
          const sealed = await seal(key, changed);
          const ttl = countSecondsLeft(changed);
          if (await store.compareAndSet(key, standing, sealed, ttl)) return changed;
        }
      }),
    /** False where the user, or all, have as many tasks running as they may. */
    reserveRun: (key: string, user: string | undefined): Promise<boolean> =>
      orInternalError(() => reserveInAll(store, running.list(user), toRunEntry(key), ttlSeconds)),
    releaseRun: (key: string, user: string | undefined): Promise<void> =>
      orInternalError(() => releaseInAll(store, running.list(user), toRunEntry(key))),
    /** False where there is no room for a result of so many bytes. */
    reserveResult: (key: string, user: string | undefined, bytes: number): Promise<boolean> =>
      orInternalError(() =>
        reserveInAll(store, listKeptBudgets(user), { name: key, bytes }, ttlSeconds),
      ),
  };
}

/** A task whose time is over is ended a moment later: its record must still be there to say so. */
const OVERTIME_SECONDS = 60;

const orInternalError = <Result>(work: () => Promise<Result>): Promise<Result> =>
  work().catch((cause: unknown) => fail('internal_error', { cause }));

// Budgets count bytes, and no entry counts as less than the smallest: so many of them are so many tasks.

const toRunEntry = (key: string) => ({ name: key, bytes: MIN_ENTRY_BYTES });

/** Of all users, at all replicas. */
const MAX_RUNNING = 8192;

function createRunningBudget(keyPrefix: string, maxPerUser: number) {
  const all: Budget = {
    key: buildTaskBudgetKey(keyPrefix, 'running', 'all'),
    maxBytes: MAX_RUNNING * MIN_ENTRY_BYTES,
  };
  return {
    list(user: string | undefined): readonly Budget[] {
      if (user === undefined || maxPerUser === 0) return [all];
      const key = buildTaskBudgetKey(keyPrefix, 'running', hashSha256(user));
      return [{ key, maxBytes: maxPerUser * MIN_ENTRY_BYTES }, all];
    },
  };
}

const MEBIBYTE = 1_048_576;
/** Of results that are kept. */
const USER_BYTES = 16 * MEBIBYTE;
const ALL_BYTES = 128 * MEBIBYTE;

function createKeptBudgets(keyPrefix: string) {
  const all: Budget = { key: buildTaskBudgetKey(keyPrefix, 'kept', 'all'), maxBytes: ALL_BYTES };
  return (user: string | undefined): readonly Budget[] => {
    if (user === undefined) return [all];
    const key = buildTaskBudgetKey(keyPrefix, 'kept', hashSha256(user));
    return [{ key, maxBytes: USER_BYTES }, all];
  };
}
