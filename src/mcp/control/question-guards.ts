// §26: what a client is asked while a call goes on, and what it answers.

import type { CancelSignal } from '../../platform/cancellation.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import { readExact, toNoted } from '../../platform/noted-json.ts';
import type {
  Guard,
  GuardCaller,
  GuardedItem,
  GuardPoint,
  Guards,
} from '../../policy/guards/guards.ts';
import { CallStopped } from './call-stopped.ts';
import { findAskedProblem } from './changed-values.ts';

export interface Question {
  readonly method: string;
  readonly params: JsonObject;
}

/** Of one call. */
export interface QuestionGuards {
  /** The question as it goes on. @throws CallStopped where it does not. */
  passQuestion(question: Question): Promise<Question>;
  /** The client's answer to a question of that method. @throws CallStopped where it does not go on. */
  passAnswer(method: string, answer: JsonObject): Promise<JsonObject>;
}

const POINTS: Readonly<
  Record<string, { readonly asked: GuardPoint; readonly answered: GuardPoint }>
> = {
  'elicitation/create': { asked: 'elicitation', answered: 'elicitation/result' },
  'sampling/createMessage': { asked: 'sampling', answered: 'sampling/result' },
  'roots/list': { asked: 'roots', answered: 'roots/result' },
};

export const QUESTION_POINTS: readonly GuardPoint[] = Object.values(POINTS).flatMap(
  ({ asked, answered }) => [asked, answered],
);

/** Undefined where no guard looks at questions: then they are not looked at. */
export function createQuestionGuards(
  guards: Guards | undefined,
  /** Undefined where it is not known what the call is about. */
  item: GuardedItem | undefined,
  caller: GuardCaller,
  signal: CancelSignal,
): QuestionGuards | undefined {
  if (guards === undefined || !QUESTION_POINTS.some(guards.looksAt)) return undefined;

  async function pass(point: GuardPoint, value: JsonObject): Promise<JsonObject> {
    const guard = item === undefined ? findStrict(guards, point) : guards?.find(point, item);
    if (guard === undefined) return value;
    const findProblem = (changed: unknown) => findAskedProblem(point, changed);
    const verdict = await guard.judge({ value: readExact(value), caller, signal, findProblem });
    if (verdict.kind === 'refused') throw new CallStopped(`guard:${verdict.by}`, verdict.message);
    return verdict.kind === 'changed' && isObject(verdict.value) ? toNoted(verdict.value) : value;
  }

  return {
    async passQuestion({ method, params }) {
      const point = POINTS[method]?.asked;
      return point === undefined
        ? { method, params }
        : { method, params: await pass(point, params) };
    },
    async passAnswer(method, answer) {
      const point = POINTS[method]?.answered;
      return point === undefined ? answer : pass(point, answer);
    },
  };
}

/** Where nobody can tell whether a guard is about it, it does not go on. */
const findStrict = (guards: Guards | undefined, point: GuardPoint): Guard | undefined =>
  guards?.looksAt(point) === true ? REFUSE : undefined;

const REFUSE: Guard = {
  judge: async () => ({
    kind: 'refused',
    by: 'unknown',
    message: 'A guard looks at questions, and only tools, prompts and resources may ask.',
  }),
};

/** All questions of one author's tool at once. @throws CallStopped */
export async function passQuestions(
  requests: Readonly<Record<string, { readonly method: string; readonly params: object }>>,
  guards: QuestionGuards,
): Promise<Readonly<Record<string, Question>>> {
  const passed: [string, Question][] = [];
  for (const [key, { method, params }] of Object.entries(requests)) {
    passed.push([key, await guards.passQuestion({ method, params: { ...params } })]);
  }
  return Object.fromEntries(passed);
}

/** What came of answers to them, by the same keys. @throws CallStopped */
export async function passAnswers(
  requests: Readonly<Record<string, { readonly method: string }>>,
  received: JsonObject,
  guards: QuestionGuards,
): Promise<JsonObject> {
  const passed: Record<string, unknown> = {};
  for (const [key, answer] of Object.entries(received)) {
    const method = requests[key]?.method;
    passed[key] =
      method !== undefined && isObject(answer) ? await guards.passAnswer(method, answer) : answer;
  }
  return passed;
}
