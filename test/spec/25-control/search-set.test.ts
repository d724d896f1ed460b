// How well search finds: 400 tools of real servers, 200 questions (bench/search/README.md).
import { describe, expect, test } from 'vitest';
import { countHits, readQuestions, readTools } from '../../../bench/search/set.ts';

const tools = readTools();
const questions = readQuestions();
const share = async (asked: typeof questions) => (await countHits(asked, tools)) / asked.length;

describe('the set', () => {
  test('§25.3 search: it has 400 tools and 200 questions, whose answers are among the tools', () => {
    expect(new Set(tools.map(({ name }) => name)).size).toBe(400);
    expect(new Set(questions.map(({ question }) => question)).size).toBe(200);
    expect(questions.filter(({ held }) => held)).toHaveLength(100);
    const names = new Set(tools.map(({ name }) => name));
    const strangers = questions.flatMap(({ answers }) =>
      answers.filter((answer) => !names.has(answer)),
    );
    expect(strangers).toEqual([]);
    expect(questions.every(({ answers }) => answers.length > 0)).toBe(true);
  });

  test('§25.3 search: one of the right tools is among the first five for nine questions in ten', async () => {
    expect(await share(questions)).toBeGreaterThanOrEqual(0.9);
  });

  test('§25.3 search: questions that nothing was tuned by are answered hardly worse', async () => {
    expect(await share(questions.filter(({ held }) => held))).toBeGreaterThanOrEqual(0.87);
  });
});
