// Configuration files with mistakes that nobody thought of.
import { expect, test } from 'vitest';
import { stringify } from 'yaml';
import { below, pick, randomOf } from '../../support/fuzz/seeded-random.ts';
import { parseFile } from '../../support/upstreams/gateway-file.ts';

const GOOD = {
  mcpServers: {
    github: {
      url: 'https://github.example/mcp?key=hunter2',
      headers: { Authorization: 'Bearer hunter2 ${SECRET}' },
      timeout: 5000,
      tools: { include: ['*'], describe: { search: 'Searches.' } },
    },
    files: { command: 'npx', args: ['hunter2'], env: { TOKEN: 'hunter2' }, isolation: 'user' },
  },
  rules: [{ who: { groups: ['staff'] }, may: ['*'] }],
} as const;

const TEXTS = { json: JSON.stringify(GOOD, null, 2), yaml: stringify(GOOD) } as const;
const PIECES = [
  '',
  ' ',
  '\n',
  '\t',
  '\0',
  '"',
  "'",
  '\\',
  '{',
  '}',
  '[',
  ']',
  ',',
  ':',
  ': ',
  '- ',
  '#',
  '//',
];
const RARE = [
  '&a ',
  '*a',
  '!!x ',
  '|',
  '>',
  '<<: ',
  '%',
  '---\n',
  '${',
  '__proto__',
  '\uFEFF',
  '1e999',
];
const CASES = 1000;

test.each(['json', 'yaml'] as const)(
  '§18.1 file: whatever is changed in a file of %s, it is read or has problems, and shows no secret',
  async (format) => {
    const kinds = { parsed: 0, problems: 0 };
    for (let index = 0; index < CASES; index += 1) {
      const random = randomOf(18, index);
      let text: string = TEXTS[format];
      for (let changes = 1 + below(random, 3); changes > 0; changes -= 1) {
        const at = below(random, text.length);
        const piece = pick(random, [...PIECES, ...RARE]);
        text = text.slice(0, at) + piece + text.slice(at + below(random, 3));
      }
      const parsed = await parseFile(text, { format, env: { SECRET: 'hunter2' } });
      kinds[parsed.kind] += 1;
      if (parsed.kind === 'parsed') continue;
      expect(parsed.problems, text).not.toEqual([]);
      for (const problem of parsed.problems)
        expect(problem).toMatch(/^mcp\.json:\d+: (?!.*(hunter2|undefined|\[object))/s);
    }
    expect(kinds.parsed).toBeGreaterThan(0);
    expect(kinds.problems).toBeGreaterThan(CASES / 10);
  },
);
