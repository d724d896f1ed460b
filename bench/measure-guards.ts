// npm run bench -- guards: what guards add to a call, above the call itself.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRunTarget } from '../src/mcp/control/run-target.ts';
import { systemClock } from '../src/platform/clock.ts';
import { createLog } from '../src/platform/log.ts';
import { createGuards } from '../src/policy/guards/create-guards.ts';
import type { GuardConfig } from '../src/policy/guards/guard-config.ts';
import type { Guards } from '../src/policy/guards/guards.ts';
import { noMetrics } from '../src/telemetry/metrics/metrics.ts';

const ROUNDS = 5;
const RUNS = 20_000;

type Call = Parameters<ReturnType<typeof createRunTarget>>[0];

interface Case {
  readonly name: string;
  /** Microseconds above a call without guards; undefined where none was set. */
  readonly goal?: number;
  readonly guards: readonly GuardConfig[];
  /** Characters of the result. */
  readonly characters?: number;
}

const guard = (changes: Partial<GuardConfig>): GuardConfig => ({
  name: 'g',
  on: ['tools/call'],
  servers: undefined,
  tools: undefined,
  use: { kind: 'secrets', action: 'redact' },
  onError: 'refuse',
  ...changes,
});

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
    { name: 'secrets, 1,000 characters', guards: [guard({ on: ['tools/result'] })] },
    {
      name: 'secrets, 100,000 characters',
      guards: [guard({ on: ['tools/result'] })],
      characters: 100_000,
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
    for (const { name, goal, guards, characters = 1_000 } of listCases(path)) {
      const found = await measure(await open(guards), characters);
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
  createGuards(guards, {
    clock: systemClock,
    log: createLog('error'),
    metrics: noMetrics,
    fetch: globalThis.fetch,
    askServer: () => Promise.reject(new Error('There are no servers here.')),
  });

/** Microseconds of one call of a target that does nothing. */
async function measure(guards: Guards | undefined, characters: number): Promise<number> {
  const runTarget = createRunTarget({ getGuards: () => guards, askFirst: async () => {} });
  const call = createCall(characters);
  const rounds: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const runs = Math.max(50, Math.round((RUNS * 1_000) / characters));
    const start = performance.now();
    for (let run = 0; run < runs; run += 1) await runTarget(call);
    rounds.push(((performance.now() - start) * 1000) / runs);
  }
  return Math.min(...rounds);
}

/** As much of a call as it takes. */
function createCall(characters: number): Call {
  const result = { content: [{ type: 'text', text: 'Nothing secret. '.repeat(characters / 16) }] };
  const call = {
    target: {
      item: { kind: 'tool', name: 'server__tool', server: 'server', annotations: {} },
      run: async () => result,
    },
    args: { path: '/a', words: 'some' },
    ask: undefined,
    context: {
      user: { sub: 'u', email: 'ada@example.com', groups: ['staff'], claims: {} },
      clientId: 'client',
      view: undefined,
      trace: {},
      relay: { meta: undefined, signal: new AbortController().signal },
      isAsking: () => false,
      flush: () => undefined,
    },
    record: { id: 1 },
    judge: () => ({ kind: 'allowed' }),
  };
  return call as unknown as Call;
}
