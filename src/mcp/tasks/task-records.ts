// §29: task records: in the store, and as clients see them.

import { failInternal, type JsonRpcErrorObject } from '../../errors/gateway-error.ts';
import { writeExactJson } from '../../platform/exact-json.ts';
import { hashSha256 } from '../../platform/ids.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import { noteMembers, toRawJson, toRawMembers } from '../../platform/noted-json.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { createBudgets, releaseInAll, reserveInAll } from '../../store/budgets.ts';
import { buildTaskBudgetKey, buildTaskKey } from '../../store/keys.ts';
import { createRecords, readVersioned, writeVersioned } from '../../store/records.ts';
import { MIN_ENTRY_BYTES } from '../../store/store.ts';
import { findClientAnswerProblem } from '../calls/client-answers.ts';
import type { Question } from '../calls/guards.ts';
import { isEmpty } from '../catalog/client-requests.ts';
import { readJsonRpcError } from '../protocol/json-rpc.ts';

export interface TaskRecord {
  /** The called tool, as clients of its path see it. */
  readonly tool: string;
  /** The replica that it runs on. */
  readonly replica: string;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  /** Epoch milliseconds. */
  readonly updatedAt: number;
  /** Time to live from `createdAt`, in milliseconds. */
  readonly ttlMs: number;
  readonly statusMessage?: string | undefined;
  /** Unanswered requests to the client, by unique keys. */
  readonly questions: Readonly<Record<string, Question>>;
  /** The client's answers. */
  readonly answers: JsonObject;
  /** Undefined while it runs. */
  readonly end?: TaskEnd | undefined;
}

export type TaskEnd =
  | { readonly status: 'completed'; readonly result: object }
  | { readonly status: 'failed'; readonly error: JsonRpcErrorObject }
  | { readonly status: 'cancelled' };

const writeRecord = ({ end, answers, ...record }: TaskRecord) =>
  writeVersioned(
    {
      ...record,
      answers: toRawMembers(answers),
      end: end && ('result' in end ? { ...end, result: toRawJson(end.result) } : end),
    },
    writeExactJson,
  );

/**
 * Undefined for a record unknown to this version.
 *
 * @throws Error for a record of a later version.
 */
function readRecord(text: string): TaskRecord | undefined {
  const record = readVersioned<JsonObject>(text, 'A task');
  const { tool, replica, createdAt, updatedAt, ttlMs, statusMessage, questions, answers, end } =
    record;
  // These values reach the client, or the tool's server, exactly as written.
  noteMembers(answers, text, ['answers']);
  noteMembers(end, text, ['end']);
  if (typeof tool !== 'string' || typeof replica !== 'string') return undefined;
  if (typeof createdAt !== 'number' || typeof updatedAt !== 'number') return undefined;
  if (typeof ttlMs !== 'number') return undefined;
  return {
    tool,
    replica,
    createdAt,
    updatedAt,
    ttlMs,
    ...(typeof statusMessage === 'string' && { statusMessage }),
    questions: readQuestions(questions),
    answers: isObject(answers) ? answers : {},
    ...(isObject(end) && { end: readEnd(end) }),
  };
}

const readQuestions = (questions: unknown): TaskRecord['questions'] =>
  Object.fromEntries(
    Object.entries(isObject(questions) ? questions : {}).flatMap(([key, question]) =>
      isObject(question) && typeof question.method === 'string' && isObject(question.params)
        ? [[key, { method: question.method, params: question.params }] as const]
        : [],
    ),
  );

function readEnd({ status, result, error }: JsonObject): TaskEnd {
  if (status === 'completed' && isObject(result)) return { status, result };
  if (status === 'cancelled') return { status };
  return { status: 'failed', error: readTaskError(error, 'Internal error') };
}

/** The error of a failed task; `otherwise` is the message if it has none. */
export const readTaskError = (error: unknown, otherwise: string): JsonRpcErrorObject =>
  readJsonRpcError(error) ?? { code: -32603, message: otherwise };

/** The poll interval of the client, in milliseconds; longer for tasks that have run for long. */
const POLL_MS = { first: 1000, later: 5000, afterMs: 60_000 };

/** `Task` of ext-tasks: the answer to the call, and the start of all views. */
export function describeTask(taskId: string, record: TaskRecord, now: number): JsonObject {
  const { createdAt, updatedAt, ttlMs, statusMessage } = record;
  return {
    taskId,
    status: record.end?.status ?? (hasQuestions(record) ? 'input_required' : 'working'),
    ...(statusMessage !== undefined && { statusMessage }),
    createdAt: new Date(createdAt).toISOString(),
    lastUpdatedAt: new Date(updatedAt).toISOString(),
    ttlMs,
    pollIntervalMs: now - createdAt < POLL_MS.afterMs ? POLL_MS.first : POLL_MS.later,
  };
}

/** `DetailedTask`: with the members that its status requires. */
export function describeInDetail(taskId: string, record: TaskRecord, now: number): JsonObject {
  const { end, questions } = record;
  const task = describeTask(taskId, record, now);
  if (end?.status === 'completed') return { ...task, result: toRawJson(end.result) };
  if (end?.status === 'failed') return { ...task, error: end.error };
  return end === undefined && hasQuestions(record) ? { ...task, inputRequests: questions } : task;
}

const hasQuestions = ({ questions }: TaskRecord) => !isEmpty(questions);

// Tasks in the store: sealed, each under the hash of id, user and path, so that no other user can find it; and their budgets.

export interface TaskOwner {
  readonly id: string;
  /** As `nameOwner` has it; undefined without authentication. */
  readonly user: string | undefined;
  /** The server or view whose path was called; undefined for `/mcp`. */
  readonly catalogName: string | undefined;
}

export type TaskRecords = ReturnType<typeof createTaskRecords>;

/** All methods reject with GatewayError `store_unavailable` if the store is unavailable. */
export function createTaskRecords({ config, store, getSeal, clock }: Runtime) {
  const { keyPrefix } = config.mcp.sessions;
  const { taskTtlSeconds: ttlSeconds, maxTasksPerUser } = config.mcp.tasks;
  const listRunning = createBudgets(
    (owner) => buildTaskBudgetKey(keyPrefix, 'running', owner),
    maxTasksPerUser * MIN_ENTRY_BYTES,
    MAX_RUNNING * MIN_ENTRY_BYTES,
  );
  const listKept = createBudgets(
    (owner) => buildTaskBudgetKey(keyPrefix, 'kept', owner),
    USER_BYTES,
    ALL_BYTES,
  );

  const records = createRecords(store, { write: writeRecord, read: readRecord }, getSeal);

  const countSecondsLeft = ({ createdAt, ttlMs, end }: TaskRecord) =>
    Math.max(1, Math.ceil((createdAt + ttlMs - clock.now()) / 1000)) +
    (end === undefined ? OVERTIME_SECONDS : 0);

  /**
   * Writes the result of `change`, if there is one; `change` runs again after a concurrent write of another replica. Resolves to
   * the record then; undefined if there is none.
   */
  const update = (
    key: string,
    change: (record: TaskRecord) => TaskRecord | undefined,
  ): Promise<TaskRecord | undefined> =>
    records
      .update(key, (record) => {
        const changed = record && change(record);
        return changed === undefined
          ? { result: record }
          : { value: changed, ttlSeconds: countSecondsLeft(changed), result: changed };
      })
      .catch(failInternal);

  return {
    buildKey: ({ id, user, catalogName }: TaskOwner): string =>
      buildTaskKey(keyPrefix, hashSha256(JSON.stringify([id, user ?? null, catalogName ?? null]))),
    create: (key: string, record: TaskRecord): Promise<void> =>
      records.put(key, record, countSecondsLeft(record)).catch(failInternal),
    read: (key: string): Promise<TaskRecord | undefined> => records.get(key).catch(failInternal),
    update,
    /** Ends an open task. Resolves as `update`. */
    end: (key: string, end: TaskEnd, statusMessage?: string): Promise<TaskRecord | undefined> =>
      update(key, (record) =>
        record.end === undefined
          ? {
              ...record,
              updatedAt: clock.now(),
              statusMessage,
              questions: {},
              answers: {},
              end,
            }
          : undefined,
      ),
    /** False if the user, or all users, run too many tasks. */
    reserveRun: (key: string, user: string | undefined): Promise<boolean> =>
      reserveInAll(store, listRunning(user), toRunEntry(key), ttlSeconds).catch(failInternal),
    releaseRun: (key: string, user: string | undefined): Promise<void> =>
      releaseInAll(store, listRunning(user), toRunEntry(key)).catch(failInternal),
    /** False if there is no room for a result of this many bytes. */
    reserveResult: (key: string, user: string | undefined, bytes: number): Promise<boolean> =>
      reserveInAll(store, listKept(user), { name: key, bytes }, ttlSeconds).catch(failInternal),
  };
}

/** An expired task is ended a moment later: its record must outlive that. */
const OVERTIME_SECONDS = 60;

// Budgets count bytes, with a minimum for each entry: so the minimum also limits the number of tasks.

const toRunEntry = (key: string) => ({ name: key, bytes: MIN_ENTRY_BYTES });

/** Running tasks of all users, on all replicas. */
const MAX_RUNNING = 8192;

const MEBIBYTE = 1_048_576;
/** For stored results. */
const USER_BYTES = 16 * MEBIBYTE;
const ALL_BYTES = 128 * MEBIBYTE;

// §29.2, ext-tasks "Task Update Requests": the client's answers to the requests of a task.

/** Maximum size as JSON, in bytes: answers stay in the store until the tool takes them. */
const MAX_ANSWER_BYTES = 1_048_576;

/** An invalid answer is refused, and the task keeps waiting. */
export function findProblem(
  { questions, answers }: TaskRecord,
  answered: JsonObject,
): string | undefined {
  for (const [key, answer] of Object.entries(answered)) {
    const question = questions[key];
    const problem = question && findClientAnswerProblem(question, answer);
    if (problem !== undefined) return `params.inputResponses "${key.slice(0, 100)}" ${problem}`;
  }
  const bytes = Buffer.byteLength(writeExactJson(toRawMembers({ ...answers, ...answered })));
  return bytes > MAX_ANSWER_BYTES
    ? `params.inputResponses are too large: answers of a task may have ${MAX_ANSWER_BYTES} bytes as JSON`
    : undefined;
}
