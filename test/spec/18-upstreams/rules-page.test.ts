// §18.5: the examples of docs/rules.md.
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parsePattern } from '../../../src/control/rules/compile-rules.ts';
import { createRules } from '../../../src/control/rules/create-rules.ts';
import { checkRules } from '../../../src/control/rules/rule-config.ts';
import type { RuleDecision, RuledItem } from '../../../src/control/rules/rules.ts';
import { createClientOf } from '../../../src/mcp/calls/call.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import type { JsonObject } from '../../../src/platform/json.ts';
import { readFile } from '../../support/upstreams/gateway-file.ts';
import { prompt, resource, tool, userWith } from '../../support/upstreams/rules.ts';

const page = readFileSync(new URL('../../../docs/rules.md', import.meta.url), 'utf8');

/** An example is a block with rules, and the table below it. */
const examples = page
  .split('```jsonc\n')
  .slice(1)
  .map((part) => {
    const [file = '', text = ''] = part.split('```\n');
    const table = /^\| Token .*\n\|[ -|]+\n((?:\|.*\n)+)/m.exec(text)?.[1] ?? '';
    const rows = table
      .trimEnd()
      .split('\n')
      .map((line) => line.split(/(?<!\\)\|/).map((cell) => cell.trim()));
    return {
      file,
      rows: rows.map(([, token = '', asked = '', result = '']) => ({
        token: token.replaceAll('`', ''),
        asked,
        result,
      })),
    };
  });

const parseJson = (text: string): JsonObject => JSON.parse(text);

const BUILDERS = { tool, prompt, resource } as const;

/** `name`, `name` `{arguments}`, or `name` with `annotation`. */
function readItem(asked: string): RuledItem {
  const [, name = '', args, annotation] =
    /^`([^`]+)`(?: `(\{[^`]*\})`| with `(\w+)`)?$/.exec(asked) ?? [];
  const { kind, glob } = parsePattern(name);
  return BUILDERS[kind](glob, {
    args: args === undefined ? undefined : parseJson(args),
    annotations: annotation === undefined ? {} : { [annotation]: true },
  });
}

function describeDecision(decision: RuleDecision): string {
  if (decision.kind === 'scopes_missing') return `needs scope ${decision.scopes.join(' ')}`;
  if (decision.kind === 'allowed' && decision.isByArgs) return 'depends on its arguments';
  return decision.kind;
}

test('§18.5 the page has examples, and each has a table', () => {
  expect(examples.length).toBeGreaterThan(5);
  for (const { rows } of examples) expect(rows.length).toBeGreaterThan(2);
});

describe.each(examples)('docs/rules.md', ({ file, rows }) => {
  test('§18.5 the rules of the page have no problems', async () => {
    const { rules } = await readFile(file);
    expect(rules.length).toBeGreaterThan(0);
    expect(await checkRules(rules)).toEqual([]);
  });

  test.each(rows)('§18.5 as the page says: $token asks for $asked: $result', async (row) => {
    const { rules } = await readFile(file);
    const user = userWith(parseJson(row.token));
    const clientOf = createClientOf(undefined);
    const { decide } = await createRules({ clock: systemClock }, rules);
    const decision = decide(readItem(row.asked), { user, clientId: clientOf({ user }) });
    expect(describeDecision(decision)).toBe(row.result);
  });
});
