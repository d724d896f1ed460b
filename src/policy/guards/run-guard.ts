// §26.3: one guard: asked, watched, counted, and what follows where it fails.

import type { UserContext } from '../../endpoint/message.ts';
import type { CancelSignal } from '../../platform/cancellation.ts';
import { toPlain } from '../../platform/plain-json.ts';
import { quote, shorten } from '../../platform/text.ts';
import { createWarnThrottle } from '../../platform/throttle.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { type AskedMessage, describeMessage, SAMPLES } from './asked-message.ts';
import { type Decision, GuardFailure, TooMuchForGuard } from './decision.ts';
import { describeUse } from './describe-use.ts';
import type { GuardConfig } from './guard-config.ts';
import type {
  GuardedItem,
  GuardedMessage,
  GuardFacts,
  GuardOutcome,
  GuardPoint,
  GuardVerdict,
} from './guards.ts';

/**
 * What a guard says of a message. At once where it is at hand.
 *
 * @throws GuardFailure, TooMuchForGuard; and whatever else, which is a failure, too.
 */
export type AskGuard = (message: AskedMessage, asker: Asker) => Decision | Promise<Decision>;

export interface Asker {
  readonly signal: CancelSignal | undefined;
  /** Whose turn it is; undefined for what concerns nobody in particular. */
  readonly user: UserContext | undefined;
}

export interface RunningGuard {
  readonly config: GuardConfig;
  /** Never rejects. Not a promise where the guard answers at once. */
  judge(
    point: GuardPoint,
    item: GuardedItem,
    message: GuardedMessage,
    value: unknown,
  ): GuardVerdict | Promise<GuardVerdict>;
  describe(): GuardFacts;
}

const PASSED: GuardVerdict = { kind: 'passed' };
const PASSED_UNSEEN: GuardVerdict = { kind: 'passed', hasFailed: true };
/** Characters of what a guard says to a caller. */
const MAX_WORDS = 2_000;

export function runGuard(
  { clock, log, metrics }: Pick<Runtime, 'clock' | 'log' | 'metrics'>,
  config: GuardConfig,
  ask: AskGuard,
): RunningGuard {
  const { name, onError } = config;
  const counts: Record<GuardOutcome, number> = { passed: 0, changed: 0, refused: 0, failed: 0 };
  let problem: string | undefined;

  const warn = createWarnThrottle(clock, (point: GuardPoint, thrown: unknown) =>
    log.warn(
      `The guard ${name} failed: ${tellFailure(thrown)}. ${
        onError === 'refuse'
          ? 'What it should have looked at is refused.'
          : 'What it should have looked at passes ("onError": "pass").'
      }`,
      { guard: name, on: point, cause: thrown instanceof GuardFailure ? thrown.cause : thrown },
    ),
  );

  function count(point: GuardPoint, outcome: GuardOutcome, startedAt: number): void {
    counts[outcome] += 1;
    metrics.recordGuard(name, point, outcome, (clock.monotonic() - startedAt) / 1000);
  }

  function toVerdict(
    decision: Decision,
    point: GuardPoint,
    findProblem: GuardedMessage['findProblem'],
    startedAt: number,
  ): GuardVerdict {
    if (decision.kind === 'change') {
      const wrong = findProblem?.(toPlain(decision.value));
      if (wrong !== undefined) {
        throw new GuardFailure(`it changed the message to one that cannot go on: ${wrong}`);
      }
    }
    problem = undefined;
    switch (decision.kind) {
      case 'pass':
        count(point, 'passed', startedAt);
        return PASSED;
      case 'change':
        count(point, 'changed', startedAt);
        return { kind: 'changed', value: decision.value };
      case 'refuse':
        count(point, 'refused', startedAt);
        return refuse(
          shorten(decision.message ?? '', MAX_WORDS) || `Refused by the guard ${name}.`,
        );
    }
  }

  function fail(thrown: unknown, point: GuardPoint, startedAt: number): GuardVerdict {
    if (thrown instanceof TooMuchForGuard) {
      count(point, 'refused', startedAt);
      return {
        ...refuse(`The guard ${name} cannot look at this now: ${thrown.message}.`),
        hasFailed: true,
      };
    }
    count(point, 'failed', startedAt);
    problem = tellFailure(thrown);
    warn(point, thrown);
    return onError === 'pass'
      ? PASSED_UNSEEN
      : {
          ...refuse(
            `The guard ${name} could not look at this, so it was refused. Try again later.`,
          ),
          hasFailed: true,
        };
  }

  const refuse = (message: string): GuardVerdict => ({ kind: 'refused', by: name, message });

  return {
    config,
    judge(point, item, { caller, signal, findProblem }, value) {
      const startedAt = clock.monotonic();
      try {
        const message = describeMessage(name, point, item, value, caller);
        const asking = ask(message, { signal, user: caller?.user });
        return asking instanceof Promise
          ? asking
              .then((decision) => toVerdict(decision, point, findProblem, startedAt))
              .catch((thrown: unknown) => fail(thrown, point, startedAt))
          : toVerdict(asking, point, findProblem, startedAt);
      } catch (thrown) {
        return fail(thrown, point, startedAt);
      }
    },
    describe: () => ({
      name,
      kind: describeUse(config.use),
      on: config.on,
      onError,
      counts,
      problem,
      async check() {
        try {
          const [on = 'tools/call'] = config.on;
          const message = describeMessage(name, on, CHECKED, SAMPLES[on], undefined);
          await ask(message, { signal: undefined, user: undefined });
          return undefined;
        } catch (thrown) {
          return tellFailure(thrown);
        }
      },
    }),
  };
}

const CHECKED: GuardedItem = { kind: undefined, name: 'postern-check', server: '' };

/** A module's own words may have what it was asked about: they are for the log's `cause` alone. */
const tellFailure = (thrown: unknown): string =>
  thrown instanceof GuardFailure || thrown instanceof TooMuchForGuard
    ? thrown.message
    : `it threw ${thrown instanceof Error ? quote(thrown.name, 40) : 'what is no error'}`;
