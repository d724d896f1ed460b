// §29.2, ext-tasks "Task Update Requests": the answers that a client gives to what a task asks.

import { writeExactJson } from '../../platform/exact-json.ts';
import type { JsonObject } from '../../platform/json.ts';
import { toRawMembers } from '../../platform/noted-json.ts';
import { findAnswerProblem } from '../calls/client-answers.ts';
import type { TaskRecord } from './task-record.ts';

/** ext-tasks: answers to what is not asked, or is answered already, are left alone. */
export const pickAnswers = ({ questions }: TaskRecord, received: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(received).filter(([key]) => Object.hasOwn(questions, key)));

export const omit = <Value>(from: Readonly<Record<string, Value>>, keys: object) =>
  Object.fromEntries(Object.entries(from).filter(([key]) => !Object.hasOwn(keys, key)));

export const isEmpty = (value: object): boolean => Object.keys(value).length === 0;

/** What fits no question is refused, and the task goes on waiting. */
export function findProblem({ questions }: TaskRecord, answered: JsonObject): string | undefined {
  for (const [key, answer] of Object.entries(answered)) {
    const question = questions[key];
    const problem = question && findAnswerProblem(question, answer);
    if (problem !== undefined) {
      return `params.inputResponses "${key.slice(0, 100)}" ${problem}`;
    }
  }
  return undefined;
}

/** Bytes as JSON: they lie in the store until the tool has taken them. */
const MAX_ANSWER_BYTES = 1_048_576;

export function findSizeProblem({ answers }: TaskRecord, answered: JsonObject): string | undefined {
  const bytes = Buffer.byteLength(writeExactJson(toRawMembers({ ...answers, ...answered })));
  return bytes > MAX_ANSWER_BYTES
    ? `params.inputResponses are too large: answers of a task may have ${MAX_ANSWER_BYTES} bytes as JSON`
    : undefined;
}
