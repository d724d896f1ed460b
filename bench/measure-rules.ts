// npm run bench -- rules: what one decision of the rules costs.

import { createRules } from '../src/control/rules/create-rules.ts';
import type { RuleConfig, RuledItem, Rules } from '../src/control/rules/rules.ts';
import type { PolicyCaller } from '../src/mcp/calls/policy.ts';
import { systemClock } from '../src/platform/clock.ts';

const RULES = 100;
const TOOLS = 1000;
const ROUNDS = 5;
const SECONDS_PER_ROUND = 0.3;

interface Case {
  readonly name: string;
  /** Microseconds; undefined where none was set. */
  readonly goal?: number;
  readonly rules: readonly RuleConfig[];
  /** How many decisions, or conditions, one run has. */
  readonly units: number;
  prepare(rules: Rules): () => void;
}

const rule = (at: number, changes: Partial<RuleConfig>): RuleConfig => ({
  who: { groups: [`group-${at}`] },
  when: undefined,
  may: [`server-${at}__*`, 'prompt:greeting'],
  place: `rules[${at}]`,
  ...changes,
});
const repeat = (changes: (at: number) => Partial<RuleConfig>): readonly RuleConfig[] =>
  Array.from({ length: RULES }, (_, at) => rule(at, changes(at)));

const PLAIN = repeat(() => ({}));
const WITH_WHEN = repeat((at) => ({
  when: `user.email.endsWith('@example-${at}.com') && tool.annotations.readOnlyHint`,
  who: 'everyone',
  may: ['*'],
}));
const WITH_ARGS = repeat((at) => ({
  when: `args.path.startsWith('/docs-${at}/') && user.email.endsWith('@example.com')`,
  who: 'everyone',
  may: ['*'],
}));

const tool = (name: string, changes: Partial<RuledItem> = {}): RuledItem => ({
  kind: 'tool',
  name,
  server: 'server',
  annotations: { readOnlyHint: true },
  args: undefined,
  ...changes,
});
const TOOL_LIST = Array.from({ length: TOOLS }, (_, at) =>
  tool(`server-${at % RULES}__tool-${at}`),
);

let tokens = 0;
/** A request of a user; `isNew` for one with another token. */
function request(isNew = false): PolicyCaller {
  if (isNew) tokens += 1;
  const claims = { sub: 'u', exp: Date.now() / 1000 + 3600, email: 'ann@example.com' };
  return {
    user: {
      sub: 'u',
      email: claims.email,
      groups: ['staff', 'group-50', 'group-99'],
      claims,
      token: `${'header.payload'.repeat(60)}.${tokens}`,
    },
    clientId: undefined,
  };
}

/** One tool of the last rule: what is remembered is found, each time for another request. */
const callAgain = (rules: Rules) => () =>
  void rules.decide(tool('server-99__read', { args: { path: '/etc/passwd' } }), request());
const listFor = (isNew: boolean) => (rules: Rules) => () => {
  const caller = request(isNew);
  for (const item of TOOL_LIST) rules.decide(item, caller);
};

const CASES: readonly Case[] = [
  { name: 'no rules', rules: [], units: 1, prepare: callAgain },
  { name: '100 rules, a call', goal: 5, rules: PLAIN, units: 1, prepare: callAgain },
  {
    name: '100 rules with when, a call',
    goal: 5,
    rules: WITH_WHEN,
    units: 1,
    prepare: callAgain,
  },
  {
    name: 'each when with args, a call',
    goal: 10,
    rules: WITH_ARGS,
    units: RULES,
    prepare: callAgain,
  },
  {
    name: 'each when with args that fails',
    goal: 10,
    rules: repeat((at) => ({ when: `args.missing == ${at}`, who: 'everyone', may: ['*'] })),
    units: RULES,
    prepare: callAgain,
  },
  {
    name: '100 rules, each of 1,000 tools listed',
    goal: 5,
    rules: PLAIN,
    units: TOOLS,
    prepare: listFor(false),
  },
  {
    name: '… for a token that was not seen before',
    rules: PLAIN,
    units: TOOLS,
    prepare: listFor(true),
  },
];

export async function measureRules(): Promise<void> {
  const rows: Record<string, object> = {};
  for (const { name, goal, rules, units, prepare } of CASES) {
    const run = prepare(await createRules({ clock: systemClock }, rules));
    const found = Math.min(...Array.from({ length: ROUNDS }, () => timeRound(run))) / units;
    rows[name] = {
      µs: Number(found.toPrecision(3)),
      goal: goal === undefined ? '' : `≤ ${goal} ${found <= goal ? 'reached' : 'missed'}`,
    };
  }
  console.table(rows);
}

/** Microseconds of one run. */
function timeRound(run: () => void): number {
  run();
  const start = performance.now();
  let runs = 0;
  while (performance.now() - start < SECONDS_PER_ROUND * 1000) {
    run();
    runs += 1;
  }
  return ((performance.now() - start) * 1000) / runs;
}
