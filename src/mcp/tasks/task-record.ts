// §29: what is known of a task, as it lies in the store, and as its client sees it.

import type { JsonRpcErrorObject } from '../../errors/gateway-error.ts';
import { writeExactJson } from '../../platform/exact-json.ts';
import { isObject, type JsonObject, parseObject } from '../../platform/json.ts';
import { noteMembers, toRawJson, toRawMembers } from '../../platform/noted-json.ts';
import { checkRecordVersion, RECORD_VERSION } from '../../store/keys.ts';
import type { Question } from '../control/question-guards.ts';

export interface TaskRecord {
  /** The tool that was called, as clients of its path see it. */
  readonly tool: string;
  /** The replica that it runs at. */
  readonly replica: string;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  /** Epoch milliseconds. */
  readonly updatedAt: number;
  /** Milliseconds from `createdAt` on for which it is kept. */
  readonly ttlMs: number;
  readonly statusMessage?: string | undefined;
  /** That the client has not answered yet, by keys that each have one question only. */
  readonly questions: Readonly<Record<string, Question>>;
  /** What the client answered. */
  readonly answers: JsonObject;
  /** Undefined while it runs. */
  readonly end?: TaskEnd | undefined;
}

export type TaskEnd =
  | { readonly status: 'completed'; readonly result: object }
  | { readonly status: 'failed'; readonly error: JsonRpcErrorObject }
  | { readonly status: 'cancelled' };

export const writeRecord = ({ end, answers, ...record }: TaskRecord): string =>
  writeExactJson({
    version: RECORD_VERSION,
    ...record,
    answers: toRawMembers(answers),
    end: end && ('result' in end ? { ...end, result: toRawJson(end.result) } : end),
  });

/**
 * Undefined for what this version does not know.
 *
 * @throws Error for a record of a later version.
 */
export function readRecord(text: string): TaskRecord | undefined {
  const { version, ...record } = parseObject(text) ?? {};
  noteRecord(record, text);
  checkRecordVersion(version, 'A task');
  const { tool, replica, createdAt, updatedAt, ttlMs, statusMessage, questions, answers, end } =
    record;
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

/** Values that reach the client, or the tool's server, as they were written. */
function noteRecord({ end, answers }: JsonObject, text: string): void {
  noteMembers(answers, text, ['answers']);
  noteMembers(end, text, ['end']);
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
  return { status: 'failed', error: readError(error) };
}

const readError = (error: unknown): JsonRpcErrorObject =>
  isObject(error) && typeof error.code === 'number' && typeof error.message === 'string'
    ? { code: error.code, message: error.message, ...('data' in error && { data: error.data }) }
    : { code: -32603, message: 'Internal error' };

/** Milliseconds until the client should ask again: what has run for long will not end in a moment. */
const POLL_MS = { first: 1000, later: 5000, afterMs: 60_000 };

/** `Task` of ext-tasks: what the call is answered with, and what all views begin with. */
export function describeTask(taskId: string, record: TaskRecord, now: number): JsonObject {
  const { createdAt, updatedAt, ttlMs, statusMessage } = record;
  return {
    taskId,
    status: readStatus(record),
    ...(statusMessage !== undefined && { statusMessage }),
    createdAt: new Date(createdAt).toISOString(),
    lastUpdatedAt: new Date(updatedAt).toISOString(),
    ttlMs,
    pollIntervalMs: now - createdAt < POLL_MS.afterMs ? POLL_MS.first : POLL_MS.later,
  };
}

/** `DetailedTask`: with what its status wants to be said. */
export function describeInDetail(taskId: string, record: TaskRecord, now: number): JsonObject {
  const { end, questions } = record;
  const task = describeTask(taskId, record, now);
  if (end?.status === 'completed') return { ...task, result: toRawJson(end.result) };
  if (end?.status === 'failed') return { ...task, error: end.error };
  return end === undefined && hasQuestions(record) ? { ...task, inputRequests: questions } : task;
}

const readStatus = (record: TaskRecord): string =>
  record.end?.status ?? (hasQuestions(record) ? 'input_required' : 'working');

const hasQuestions = ({ questions }: TaskRecord): boolean => Object.keys(questions).length > 0;
