// The set that search is measured on (README.md): its tools as entries of a list, and its questions.

import { readFileSync } from 'node:fs';
import type { Entry } from '../../src/catalog/prepare-list.ts';
import { rank, readQuery } from '../../src/catalog/search/rank.ts';
import type { Turns } from '../../src/platform/clock.ts';
import { isObject } from '../../src/platform/json.ts';

export interface Question {
  readonly question: string;
  /** Each of them answers it. */
  readonly answers: readonly string[];
  /** Nothing was changed because of it. */
  readonly held: boolean;
}

/** The 400 tools, under their names at `/mcp`. */
export const readTools = (): readonly Entry[] => readLines('tools.jsonl').map(toEntry);

export const readQuestions = (): readonly Question[] =>
  readLines('questions.jsonl').map(({ question, answers, held }) => ({
    question: String(question),
    answers: Array.isArray(answers) ? answers.map(String) : [],
    held: held === true,
  }));

/** How many of the questions have one of their answers among the first five tools. */
export async function countHits(
  questions: readonly Question[],
  tools: readonly Entry[],
): Promise<number> {
  let hits = 0;
  for (const { question, answers } of questions) {
    const found = await rank(readQuery(question), tools, AT_ONCE);
    if (found.slice(0, 5).some(({ name }) => answers.includes(name))) hits += 1;
  }
  return hits;
}

/** Nobody else waits. */
export const AT_ONCE: Turns = { isOver: () => false, next: async () => {} };

function readLines(file: string) {
  const text = readFileSync(new URL(file, import.meta.url), 'utf8');
  return text
    .trimEnd()
    .split('\n')
    .map((line): unknown => JSON.parse(line))
    .filter(isObject);
}

function toEntry({ server, name, ...tool }: Readonly<Record<string, unknown>>): Entry {
  const ownName = String(name);
  const ownItem = { name: ownName, ...tool };
  const joined = `${server}__${ownName}`;
  return {
    kind: 'tool',
    server: String(server),
    ownName,
    name: joined,
    ownItem,
    item: { ...ownItem, name: joined },
    annotations: {},
  };
}
