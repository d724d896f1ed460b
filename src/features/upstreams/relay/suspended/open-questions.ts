// Questions of one call that have no answer yet.
import type { CancelSignal } from '../../../../core/cancellation.ts';
import { isObject, type JsonObject } from '../../../../core/json.ts';
import type { UpstreamError, UpstreamQuestion } from '../../upstream.ts';
import { refuseQuestion } from '../questions.ts';

export interface OpenQuestions {
  /** Resolves to the client's answer; one that the server cancels is not told, and its answer changes nothing. */
  add(question: UpstreamQuestion, cancelled: CancelSignal): Promise<JsonObject>;
  /** The oldest: they are told one after the other. */
  getFirst(): { readonly key: string; readonly question: UpstreamQuestion } | undefined;
  /** What was answered before, and what is no answer, changes nothing. */
  answer(key: string, answer: unknown): void;
  /** The server gets an error for each. */
  refuseAll(reason: string): void;
}

interface OpenQuestion {
  readonly question: UpstreamQuestion;
  resolve(answer: JsonObject): void;
  reject(reason: UpstreamError): void;
}

export function createOpenQuestions(): OpenQuestions {
  const questions = new Map<string, OpenQuestion>();
  let asked = 0;

  return {
    add(question, cancelled) {
      asked += 1;
      const key = `question-${asked}`;
      return new Promise((resolve, reject) => {
        questions.set(key, { question, resolve, reject });
        cancelled.addEventListener('abort', () => {
          if (questions.delete(key)) reject(refuseQuestion('The server no longer asks.'));
        });
      });
    },
    getFirst() {
      const [first] = questions;
      return first && { key: first[0], question: first[1].question };
    },
    answer(key, answer) {
      const open = questions.get(key);
      if (open === undefined || !isObject(answer)) return;
      questions.delete(key);
      open.resolve(answer);
    },
    refuseAll(reason) {
      for (const { reject } of questions.values()) reject(refuseQuestion(reason));
      questions.clear();
    },
  };
}
