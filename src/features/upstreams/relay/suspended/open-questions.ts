// Questions of one call that have no answer yet.
import { isObject, type JsonObject } from '../../../../core/json.ts';
import type { UpstreamError, UpstreamQuestion } from '../../upstream.ts';
import { refuseQuestion } from '../questions.ts';

export interface OpenQuestions {
  /** Resolves to the client's answer. */
  add(question: UpstreamQuestion): Promise<JsonObject>;
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
    add(question) {
      asked += 1;
      const key = `question-${asked}`;
      return new Promise((resolve, reject) => {
        questions.set(key, { question, resolve, reject });
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
