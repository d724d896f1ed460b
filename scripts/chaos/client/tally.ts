// A client's record: answers by kind, and how long they took.

export type AnswerKind = 'good' | 'refused' | 'wrong';

export interface Tally {
  record(kind: Exclude<AnswerKind, 'wrong'>, ms: number): void;
  /** Keeps the first few, for the report. */
  recordWrong(story: string, ms: number): void;
  count(kind: AnswerKind): number;
  readonly calls: number;
  readonly slowestMs: number;
  /** For all answers, or those of one kind; NaN if there are none. */
  percentile(share: number, kind?: AnswerKind): number;
  readonly wrongStories: readonly string[];
}

const STORIES = 5;

/** The record of one of several clients, which is also kept in `whole`. */
export function createTally(whole?: Tally): Tally {
  const times: Record<AnswerKind, number[]> = { good: [], refused: [], wrong: [] };
  const wrongStories: string[] = [];
  let slowestMs = 0;

  function note(kind: AnswerKind, ms: number): void {
    times[kind].push(ms);
    if (ms > slowestMs) slowestMs = ms;
  }

  return {
    record(kind, ms) {
      note(kind, ms);
      whole?.record(kind, ms);
    },
    recordWrong(story, ms) {
      note('wrong', ms);
      whole?.recordWrong(story, ms);
      if (wrongStories.length < STORIES) wrongStories.push(story);
    },
    count: (kind) => times[kind].length,
    get calls() {
      return times.good.length + times.refused.length + times.wrong.length;
    },
    get slowestMs() {
      return slowestMs;
    },
    percentile(share, kind) {
      const all = kind ? times[kind] : [...times.good, ...times.refused, ...times.wrong];
      const sorted = Float64Array.from(all).sort();
      return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
    },
    wrongStories,
  };
}
