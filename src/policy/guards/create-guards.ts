// §26: the guards of a configuration, compiled: which look at what, and in which order.

import { compileGlob } from '../../platform/glob.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { createLinksGuard } from './built-in/links.ts';
import { createRunWork } from './built-in/run-work.ts';
import { createSecretsGuard } from './built-in/secrets.ts';
import { createSizeGuard } from './built-in/size.ts';
import type { GuardConfig } from './guard-config.ts';
import type {
  Guard,
  GuardedItem,
  GuardedMessage,
  GuardPoint,
  Guards,
  GuardVerdict,
} from './guards.ts';
import { createHttpGuard } from './http-guard.ts';
import { type AskServer, createMcpGuard } from './mcp-guard.ts';
import { loadModuleGuard } from './module-guard.ts';
import { type AskGuard, type RunningGuard, runGuard } from './run-guard.ts';

/** `fetch` keeps its connections. */
type GuardRuntime = Pick<Runtime, 'clock' | 'log' | 'metrics' | 'fetch'>;

/**
 * Undefined without guards.
 *
 * @throws ConfigError for a module that cannot be loaded.
 */
export async function createGuards(
  runtime: GuardRuntime,
  configs: readonly GuardConfig[] = [],
  askServer: AskServer,
): Promise<Guards | undefined> {
  if (configs.length === 0) return undefined;
  const runWork = createRunWork();
  const running = await Promise.all(
    configs.map(async (config) => ({
      runs: runGuard(runtime, config, await openGuard(config)),
      isAbout: createIsAbout(config),
    })),
  );
  return joinGuards(running);

  async function openGuard({ name, use }: GuardConfig): Promise<AskGuard> {
    switch (use.kind) {
      case 'http':
        return createHttpGuard(runtime, use);
      case 'mcp':
        return createMcpGuard(runtime, use, askServer);
      case 'module':
        return loadModuleGuard(runtime, name, use);
      case 'secrets':
        return createSecretsGuard(use.action, runWork);
      case 'size':
        return createSizeGuard(use.maxBytes, runWork);
      case 'links':
        return createLinksGuard(use, runWork);
    }
  }
}

interface PlacedGuard {
  readonly runs: RunningGuard;
  isAbout(point: GuardPoint, item: GuardedItem): boolean;
}

function createIsAbout({ on, servers, tools }: GuardConfig): PlacedGuard['isAbout'] {
  const points = new Set(on);
  const globs = tools?.map(compileGlob);
  return (point, { kind, name, server }) =>
    points.has(point) &&
    (servers === undefined || servers.includes(server)) &&
    (globs === undefined || kind !== 'tool' || globs.some((fits) => fits(name)));
}

function joinGuards(all: readonly PlacedGuard[]): Guards {
  /** An entry of a list is the same object for each call: what looks at it is looked for once. */
  const known = new WeakMap<GuardedItem, Map<GuardPoint, Guard | undefined>>();
  const points = new Set(all.flatMap(({ runs }) => runs.config.on));

  function select(point: GuardPoint, item: GuardedItem): Guard | undefined {
    const chosen = all.filter(({ isAbout }) => isAbout(point, item)).map(({ runs }) => runs);
    return chosen.length === 0
      ? undefined
      : { judge: (message) => judgeAll(chosen, point, item, message) };
  }

  return {
    find(point, item) {
      if (!points.has(point)) return undefined;
      const ofItem = known.get(item) ?? new Map<GuardPoint, Guard | undefined>();
      if (ofItem.has(point)) return ofItem.get(point);
      if (ofItem.size === 0) known.set(item, ofItem);
      const guard = select(point, item);
      ofItem.set(point, guard);
      return guard;
    },
    looksAt: (point) => points.has(point),
    listGuards: () => all.map(({ runs }) => runs.describe()),
  };
}

const PASSED: GuardVerdict = { kind: 'passed' };

/** Each looks at what the ones before made of it. */
async function judgeAll(
  guards: readonly RunningGuard[],
  point: GuardPoint,
  item: GuardedItem,
  message: GuardedMessage,
): Promise<GuardVerdict> {
  let { value } = message;
  let isChanged = false;
  let hasFailed = false;
  for (const guard of guards) {
    const judging = guard.judge(point, item, message, value);
    const verdict = judging instanceof Promise ? await judging : judging;
    if (verdict.kind === 'refused') return verdict;
    hasFailed ||= verdict.hasFailed === true;
    if (verdict.kind === 'passed') continue;
    value = verdict.value;
    isChanged = true;
  }
  if (!isChanged && !hasFailed) return PASSED;
  const unsure = hasFailed && ({ hasFailed } as const);
  return isChanged ? { kind: 'changed', value, ...unsure } : { ...PASSED, ...unsure };
}
