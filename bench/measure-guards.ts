// npm run bench -- guards: what guards, rules and who must be asked add to a call, above the call itself.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createGuards } from '../src/control/guards/create-guards.ts';
import { createRules, createRulesPolicy } from '../src/control/rules/create-rules.ts';
import type { RuleConfig } from '../src/control/rules/rules.ts';
import type { ItemCall } from '../src/mcp/calls/context.ts';
import type { GuardConfig, Guards } from '../src/mcp/calls/guards.ts';
import { joinPolicies, type Policies } from '../src/mcp/calls/policy.ts';
import { type CallControl, runAllowed } from '../src/mcp/calls/run-call.ts';
import { systemClock } from '../src/platform/clock.ts';
import { createLog } from '../src/platform/log.ts';
import { noMetrics } from '../src/telemetry/metrics/metrics.ts';

const ROUNDS = 5;
const RUNS = 20_000;

type Call = ItemCall;

interface Case {
  readonly name: string;
  /** Microseconds above a call without guards; undefined where none was set. */
  readonly goal?: number;
  readonly guards: readonly GuardConfig[];
  /** Asked before each call. */
  readonly rules?: readonly RuleConfig[];
  /** Characters of the result. */
  readonly characters?: number;
}

const SECRETS = { kind: 'secrets', action: 'redact' } as const;

const guard = (changes: Partial<GuardConfig>): GuardConfig => ({
  name: 'g',
  on: ['tools/call'],
  servers: undefined,
  tools: undefined,
  use: SECRETS,
  onError: 'refuse',
  ...changes,
});

/** The last asks about a tool that nobody calls here; of the others one allows the call. */
const RULES: readonly RuleConfig[] = Array.from({ length: 20 }, (_, at) => ({
  who: at === 18 ? { groups: ['staff'] } : { groups: [`group-${at}`, 'staff'] },
  when: undefined,
  may: [at === 18 ? 'server__*' : `server-${at}__*`],
  ask: at === 19 ? ('user' as const) : undefined,
  place: `rules[${at}]`,
}));

const listCases = (path: string): readonly Case[] => {
  const use = { kind: 'module', path, timeoutMs: 2_000 } as const;
  return [
    { name: 'no guard', guards: [] },
    { name: 'a guard that looks at other servers', goal: 1, guards: [guard({ servers: ['x'] })] },
    { name: 'one module on tools/call', goal: 5, guards: [guard({ use })] },
    {
      name: 'one module on tools/call and tools/result',
      goal: 10,
      guards: [guard({ use, on: ['tools/call', 'tools/result'] })],
    },
    {
      name: '20 rules, one of which asks about something else, and one module on tools/call',
      goal: 15,
      guards: [guard({ use })],
      rules: RULES,
    },
    { name: 'secrets, 1,000 characters', guards: [guard({ on: ['tools/result'] })] },
    {
      name: 'secrets, 100,000 characters',
      guards: [guard({ on: ['tools/result'] })],
      characters: 100_000,
    },
    {
      name: 'secrets, 7,500,000 characters, in turns',
      guards: [guard({ on: ['tools/result'] })],
      characters: 7_500_000,
    },
  ];
};

export async function measureGuards(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-bench-'));
  try {
    const path = join(folder, 'guard.mjs');
    await writeFile(path, "const PASS = { decision: 'pass' }; export default () => PASS;\n");
    const rows: Record<string, object> = {};
    let without = 0;
    for (const { name, goal, guards, rules = [], characters = 1_000 } of listCases(path)) {
      const policies = await openPolicies(rules);
      const found = await measure(await open(guards), policies, characters);
      if (guards.length === 0) without = found;
      const added = found - without;
      rows[name] = {
        µs: Number(found.toPrecision(3)),
        added: Number(added.toFixed(2)),
        goal: goal === undefined ? '' : `≤ ${goal} ${added <= goal ? 'reached' : 'missed'}`,
      };
    }
    console.table(rows);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const open = (guards: readonly GuardConfig[]): Promise<Guards | undefined> =>
  createGuards(
    {
      clock: systemClock,
      log: createLog('error'),
      metrics: noMetrics,
      fetch: globalThis.fetch,
    },
    guards,
    () => Promise.reject(new Error('There are no servers here.')),
  );

const openPolicies = async (rules: readonly RuleConfig[]): Promise<Policies> =>
  joinPolicies([createRulesPolicy(await createRules({ clock: systemClock }, rules))]);

/** Microseconds of one call of a target that does nothing. */
async function measure(
  guards: Guards | undefined,
  policies: Policies,
  characters: number,
): Promise<number> {
  const control: CallControl = {
    getGuards: () => guards,
    askFirst: async () => {},
    judge: policies.judge,
  };
  const call = createCall(characters);
  const { target, context, args } = call;
  const rounds: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const runs = Math.max(5, Math.round((RUNS * 1_000) / characters));
    const start = performance.now();
    for (let run = 0; run < runs; run += 1) {
      const verdict = policies.judge(target.item, context, args);
      if (verdict.kind !== 'allowed') throw new Error('The rules of the benchmark deny its call.');
      await runAllowed({ ...call }, control);
    }
    rounds.push(((performance.now() - start) * 1000) / runs);
  }
  return Math.min(...rounds);
}

/** As much of a call as it takes. */
function createCall(characters: number): Call {
  const result = { content: [{ type: 'text', text: 'Nothing secret. '.repeat(characters / 16) }] };
  const caller = {
    user: {
      sub: 'u',
      email: 'ada@example.com',
      groups: ['staff'],
      claims: { exp: 4_000_000_000 },
      token: 'header.payload.signature',
    },
    clientId: 'client',
    view: undefined,
    trace: {},
  };
  const call = {
    target: {
      item: { kind: 'tool', name: 'server__tool', server: 'server', annotations: {} },
      run: async () => result,
    },
    args: { path: '/a', words: 'some' },
    ask: undefined,
    context: {
      ...caller,
      relay: { meta: undefined, signal: new AbortController().signal },
      isAsking: () => false,
      flush: () => undefined,
    },
    record: { id: 1, ...caller },
  };
  return call as unknown as Call;
}
