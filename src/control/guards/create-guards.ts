// §26: compiles the guards of a configuration: which of them check what, and the order.

import type {
  Guard,
  GuardConfig,
  GuardedItem,
  GuardedMessage,
  GuardFacts,
  GuardOutcome,
  GuardPoint,
  Guards,
  GuardVerdict,
} from '../../mcp/calls/guards.ts';
import { toPlain } from '../../platform/exact-json.ts';
import { compileGlob } from '../../platform/glob.ts';
import { quote, shorten } from '../../platform/text.ts';
import { createWarnThrottle } from '../../platform/throttle.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import {
  type AskGuard,
  describeMessage,
  GuardFailure,
  POINTS,
  TooMuchForGuard,
} from './ask-guard.ts';
import { type AskServer, createRunWork, type GuardHost, type GuardKind } from './define-guard.ts';
import { bindGuard, GUARD_KINDS } from './guard-config.ts';

/**
 * Undefined without guards.
 *
 * @throws ConfigError for a module that cannot be loaded.
 */
export async function createGuards(
  runtime: Pick<Runtime, 'clock' | 'log' | 'metrics' | 'fetch'>,
  configs: readonly GuardConfig[] = [],
  askServer: AskServer,
  kinds: readonly GuardKind[] = GUARD_KINDS,
): Promise<Guards | undefined> {
  if (configs.length === 0) return undefined;
  const { clock, fetch } = runtime;
  const host: GuardHost = { clock, fetch, askServer, runWork: createRunWork(clock) };
  const all = await Promise.all(
    configs.map(async (config) => {
      const guard = bindGuard(config.use, kinds);
      return runGuard(runtime, config, await guard.open(host, config.name), guard.describe());
    }),
  );
  const points = new Set(configs.flatMap(({ on }) => on));
  /** Cached by item: a list entry is the same object for each call. */
  const known = new WeakMap<GuardedItem, Map<GuardPoint, Guard | undefined>>();

  return {
    find(point, item) {
      if (!points.has(point)) return undefined;
      const ofItem = known.get(item) ?? new Map<GuardPoint, Guard | undefined>();
      if (ofItem.has(point)) return ofItem.get(point);
      if (ofItem.size === 0) known.set(item, ofItem);
      const chosen = all.filter(({ isAbout }) => isAbout(point, item));
      const guard: Guard | undefined =
        chosen.length === 0
          ? undefined
          : { judge: (message) => judgeAll(chosen, point, item, message) };
      ofItem.set(point, guard);
      return guard;
    },
    looksAt: (point) => points.has(point),
    listGuards: () => all.map(({ describe }) => describe()),
  };
}

const PASSED: GuardVerdict = { kind: 'passed' };
const PASSED_UNSEEN: GuardVerdict = { kind: 'passed', hasFailed: true };

/** In sequence: each sees the value as changed by the ones before. */
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
    const verdict = await guard.judge(point, item, message, value);
    if (verdict.kind === 'refused') return verdict;
    hasFailed ||= verdict.hasFailed === true;
    if (verdict.kind === 'passed') continue;
    value = verdict.value;
    isChanged = true;
  }
  if (isChanged) return { kind: 'changed', value, ...(hasFailed && { hasFailed }) };
  return hasFailed ? PASSED_UNSEEN : PASSED;
}

// §26.3: one guard: calls it, counts its verdicts, and applies its `onError`.

type RunningGuard = ReturnType<typeof runGuard>;

/** Maximum length of a guard's message to a caller, in characters. */
const MAX_WORDS = 2_000;

function runGuard(
  { clock, log, metrics }: Pick<Runtime, 'clock' | 'log' | 'metrics'>,
  config: GuardConfig,
  ask: AskGuard,
  kind: string,
) {
  const { name, on, servers, tools, onError } = config;
  const globs = tools?.map(compileGlob);
  const counts: Record<GuardOutcome, number> = { passed: 0, changed: 0, refused: 0, failed: 0 };
  let problem: string | undefined;

  const warn = createWarnThrottle(clock, (point: GuardPoint, thrown: unknown) =>
    log.warn(
      `The guard ${name} failed: ${tellFailure(thrown)}. ${
        onError === 'refuse' ? 'The message is refused.' : 'The message passes ("onError": "pass").'
      }`,
      { guard: name, on: point, cause: thrown instanceof GuardFailure ? thrown.cause : thrown },
    ),
  );

  function count(point: GuardPoint, outcome: GuardOutcome, startedAt: number) {
    counts[outcome] += 1;
    metrics.recordGuard(name, point, outcome, (clock.monotonic() - startedAt) / 1000);
  }

  function fail(thrown: unknown, point: GuardPoint, startedAt: number): GuardVerdict {
    const isTooMuch = thrown instanceof TooMuchForGuard;
    count(point, isTooMuch ? 'refused' : 'failed', startedAt);
    if (!isTooMuch) {
      problem = tellFailure(thrown);
      warn(point, thrown);
      if (onError === 'pass') return PASSED_UNSEEN;
    }
    const words = isTooMuch
      ? `The guard ${name} cannot check this now: ${thrown.message}.`
      : `The guard ${name} could not check this, so it was refused. Try again later.`;
    return { ...refuse(words), hasFailed: true };
  }

  const refuse = (message: string): GuardVerdict => ({ kind: 'refused', by: name, message });

  return {
    isAbout: (point: GuardPoint, item: GuardedItem) =>
      on.includes(point) &&
      (servers === undefined || servers.includes(item.server)) &&
      (globs === undefined || item.kind !== 'tool' || globs.some((fits) => fits(item.name))),
    /** Never rejects. `value` is the message's, as changed by the guards before. */
    async judge(
      point: GuardPoint,
      item: GuardedItem,
      { caller, signal, findProblem }: GuardedMessage,
      value: unknown,
    ): Promise<GuardVerdict> {
      const startedAt = clock.monotonic();
      try {
        const message = describeMessage(name, point, item, { value, caller });
        const decision = await ask(message, { signal, user: caller?.user });
        if (decision.kind === 'change') {
          const wrong = findProblem?.(toPlain(decision.value));
          if (wrong !== undefined)
            throw new GuardFailure(`it changed the message to an invalid one: ${wrong}`);
        }
        problem = undefined;
        count(point, OUTCOMES[decision.kind], startedAt);
        if (decision.kind === 'pass') return PASSED;
        if (decision.kind === 'change') return { kind: 'changed', value: decision.value };
        const words = shorten(decision.message ?? '', MAX_WORDS);
        return refuse(words || `Refused by the guard ${name}.`);
      } catch (thrown) {
        return fail(thrown, point, startedAt);
      }
    },
    describe: (): GuardFacts => ({
      name,
      kind,
      on,
      onError,
      counts,
      problem,
      async check() {
        try {
          const [point = 'tools/call'] = on;
          const [, , sample] = POINTS[point];
          const message = describeMessage(name, point, CHECKED, {
            value: sample,
            caller: undefined,
          });
          await ask(message, { signal: undefined, user: undefined });
          return undefined;
        } catch (thrown) {
          return tellFailure(thrown);
        }
      },
    }),
  };
}

const OUTCOMES = { pass: 'passed', change: 'changed', refuse: 'refused' } as const;

const CHECKED: GuardedItem = { kind: undefined, name: 'postern-check', server: '' };

/** Errors of a module may contain the guarded value: they are for the log's `cause` only. */
const tellFailure = (thrown: unknown) =>
  thrown instanceof GuardFailure || thrown instanceof TooMuchForGuard
    ? thrown.message
    : `it threw ${thrown instanceof Error ? quote(thrown.name, 40) : 'what is no error'}`;
