// Questions of one call that have no answer yet.
import type { CancelSignal } from '../../../../core/cancellation.ts';
import { isObject, type JsonObject } from '../../../../core/json.ts';
import type { UpstreamError, UpstreamQuestion } from '../../upstream.ts';
import { refuseQuestion } from '../questions.ts';

export interface OpenQuestions {
  /** Resolves to the client's answer; one that the server cancels is not told, and its answer changes nothing. */
  add(question: UpstreamQuestion, cancelled: CancelSignal): AddedQuestion;
  /** The oldest: they are told one after the other. */
  getFirst(): { readonly key: string; readonly question: UpstreamQuestion } | undefined;
  /** What was answered before, and what is no answer, changes nothing. */
  answer(key: string, answer: unknown): void;
  /** The server gets an error. */
  refuse(key: string, reason: string): void;
  /** The server gets an error for each. */
  refuseAll(reason: string): void;
  countBytes(): number;
}

interface AddedQuestion {
  readonly key: string;
  readonly answer: Promise<JsonObject>;
}

interface OpenQuestion {
  readonly question: UpstreamQuestion;
  readonly bytes: number;
  resolve(answer: JsonObject): void;
  reject(reason: UpstreamError): void;
}

export function createOpenQuestions(): OpenQuestions {
  const questions = new Map<string, OpenQuestion>();
  let asked = 0;

  function refuse(key: string, reason: string): void {
    const open = questions.get(key);
    if (questions.delete(key)) open?.reject(refuseQuestion(reason));
  }

  return {
    add(question, cancelled) {
      asked += 1;
      const key = `question-${asked}`;
      const bytes = Buffer.byteLength(JSON.stringify(question));
      const answer = new Promise<JsonObject>((resolve, reject) => {
        questions.set(key, { question, bytes, resolve, reject });
        cancelled.addEventListener('abort', () => refuse(key, 'The server no longer asks.'));
      });
      return { key, answer };
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
    refuse,
    refuseAll(reason) {
      for (const key of [...questions.keys()]) refuse(key, reason);
    },
    countBytes: () => [...questions.values()].reduce((sum, { bytes }) => sum + bytes, 0),
  };
}
