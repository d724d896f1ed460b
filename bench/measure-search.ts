// npm run bench -- search: how well a view that is searched finds its tools, and how long that takes (search/README.md).

import type { Entry } from '../src/catalog/prepare-list.ts';
import { rank, readQuery } from '../src/catalog/search/rank.ts';
import { AT_ONCE, countHits, readQuestions, readTools } from './search/set.ts';

const GOALS = { share: 0.9, ms: 2 } as const;
const TOOLS = 1_000;
const ROUNDS = 5;

export async function measureSearch(): Promise<void> {
  const tools = readTools();
  const questions = readQuestions();
  const rate = async (asked: typeof questions) => {
    const hits = await countHits(asked, tools);
    return { hits, of: asked.length, share: hits / asked.length };
  };
  console.table({
    all: { ...(await rate(questions)), goal: GOALS.share },
    'tuned by': await rate(questions.filter(({ held }) => !held)),
    held: await rate(questions.filter(({ held }) => held)),
  });
  const many = growTo(tools, TOOLS);
  const texts = questions.map(({ question }) => question);
  const typical = await timeBest(texts, many);
  const longest = await timeBest([texts.join(' ')], many);
  console.table({
    'a question': { ms: Number(typical.toPrecision(3)), goal: GOALS.ms },
    'the longest there can be': { ms: Number(longest.toPrecision(3)) },
  });
}

async function timeBest(texts: readonly string[], tools: readonly Entry[]): Promise<number> {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round += 1) {
    best = Math.min(best, await timeEach(texts, tools));
  }
  return best;
}

/** The same tools again, of servers of other names. */
const growTo = (tools: readonly Entry[], count: number): readonly Entry[] =>
  Array.from({ length: count }, (_, at) => {
    const tool = tools[at % tools.length] ?? tools[0];
    const round = Math.floor(at / tools.length);
    return { ...tool, server: `${tool?.server}-${round}`, name: `${round}-${tool?.name}` };
  }).filter((entry): entry is Entry => entry.item !== undefined);

/** Milliseconds of CPU time of one. */
async function timeEach(texts: readonly string[], tools: readonly Entry[]): Promise<number> {
  const start = process.cpuUsage();
  for (const text of texts) await rank(readQuery(text), tools, AT_ONCE);
  return process.cpuUsage(start).user / 1_000 / texts.length;
}
