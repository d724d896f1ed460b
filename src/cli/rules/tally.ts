// §28: what the rules would have done with many calls, counted by rule, user and name.

import { compileMay, parsePattern } from '../../control/rules/compile-rules.ts';
import type { LoggedCall, ReplayVerdict } from '../../control/rules/replay-rules.ts';
import type { AskWhom } from '../../mcp/calls/policy.ts';
import type { RuleConfig } from '../../mcp/calls/rules.ts';
import type { CallResult } from './read-audit-log.ts';

/** Calls of one user by one name that end alike. */
export interface CountedCalls {
  readonly kind: LoggedCall['item']['kind'];
  readonly name: string;
  /** `null` where nobody was logged in. */
  readonly user: string | null;
  /** Absent for users of `OIDC_ISSUER`. */
  readonly issuer?: string | undefined;
  readonly rules: readonly string[];
  calls: number;
}

export type DecisionChange = 'refused' | 'allowed' | 'needs_scope';

interface ChangedCalls extends CountedCalls {
  readonly change: DecisionChange;
}

export interface UnknownCalls extends CountedCalls {
  /** Facts that the log does not have, as conditions name them. */
  readonly missing: readonly string[];
}

/** Allowed calls about which somebody is asked first (§27). */
interface AskedCalls extends CountedCalls {
  readonly ask: AskWhom;
}

/** The calls that a rule allowed, of those that were allowed before, too. */
export interface UsedRule {
  readonly rule: string;
  readonly may: readonly string[];
  readonly used: readonly UsedName[];
  /** Its patterns that fit none of these. */
  readonly unused: readonly string[];
}

interface UsedName {
  /** As a pattern names it. */
  readonly name: string;
  readonly calls: number;
  readonly users: number;
}

export type TallyResult = ReturnType<ReturnType<typeof createTally>['finish']>;

export function createTally(rules: readonly RuleConfig[]) {
  /** `calls` were judged, then and now; others were stopped by something else than rules, or nobody judged them. */
  const numbers = { calls: 0, stayAllowed: 0, stayRefused: 0, stopped: 0, unjudged: 0 };
  const changes = new Map<string, ChangedCalls>();
  const unknown = new Map<string, UnknownCalls>();
  /** Calls that are allowed now. */
  const asked = new Map<string, AskedCalls>();
  /** Calls of which it is known that they are allowed, but not whether somebody else is asked first. */
  const mayBeAsked = new Map<string, UnknownCalls>();
  const used = new Map(rules.map(({ place }) => [place, new Map<string, Usage>()]));

  function countUse(call: LoggedCall, rule: string | undefined): void {
    const names = rule === undefined ? undefined : used.get(rule);
    if (names === undefined) return;
    const name = toPattern(call);
    const usage = names.get(name) ?? { call, calls: 0, users: new Set() };
    names.set(name, usage);
    usage.calls += 1;
    usage.users.add(JSON.stringify([call.user, call.issuer]));
  }

  return {
    count(call: LoggedCall, result: CallResult, verdict: ReplayVerdict): void {
      if (result === 'unjudged' || result === 'stopped') {
        numbers[result] += 1;
        return;
      }
      numbers.calls += 1;
      const { item, user = null, issuer } = call;
      const counted = { kind: item.kind, name: item.name, user, issuer };
      if (verdict.kind === 'unknown') {
        const { missing } = verdict;
        add(unknown, { missing, ...counted, rules: verdict.rules, calls: 0 });
        return;
      }
      if (verdict.kind === 'allowed') {
        const { ask, askRule = '', mayAsk } = verdict;
        if (ask !== undefined) add(asked, { ask, ...counted, rules: [askRule], calls: 0 });
        if (mayAsk !== undefined) add(mayBeAsked, { ...counted, ...mayAsk, calls: 0 });
        if (result === 'allowed') countUse(call, verdict.rule);
      }
      if (verdict.kind === result) {
        numbers[result === 'allowed' ? 'stayAllowed' : 'stayRefused'] += 1;
        return;
      }
      const change = CHANGES[verdict.kind];
      add(changes, { change, ...counted, rules: listRules(verdict), calls: 0 });
    },
    finish: () => ({
      ...numbers,
      changes: sort([...changes.values()]),
      unknown: sort([...unknown.values()]),
      asked: sort([...asked.values()]),
      mayBeAsked: sort([...mayBeAsked.values()]),
      rules: rules.map(({ place, may }) => toUsedRule(place, may, used.get(place) ?? new Map())),
    }),
  };
}

const CHANGES: Readonly<Record<Exclude<ReplayVerdict['kind'], 'unknown'>, DecisionChange>> = {
  allowed: 'allowed',
  denied: 'refused',
  scopes_missing: 'needs_scope',
};

/** That allow it; of a call that is refused those that are about it. */
function listRules(verdict: Exclude<ReplayVerdict, { kind: 'unknown' }>): readonly string[] {
  if (verdict.kind === 'denied') return verdict.about;
  return verdict.rule === undefined ? [] : [verdict.rule];
}

function add<Counted extends CountedCalls>(all: Map<string, Counted>, counted: Counted): void {
  const key = JSON.stringify(counted);
  const known = all.get(key) ?? counted;
  all.set(key, known);
  known.calls += 1;
}

const sort = <Counted extends CountedCalls>(all: Counted[]): readonly Counted[] =>
  all.sort((one, other) => other.calls - one.calls || (one.name < other.name ? -1 : 1));

interface Usage {
  readonly call: LoggedCall;
  calls: number;
  readonly users: Set<string>;
}

/** As `may` of a rule names it. */
const toPattern = ({ item: { kind, name } }: LoggedCall): string =>
  kind === 'tool' ? name : `${kind}:${name}`;

function toUsedRule(
  rule: string,
  may: readonly string[],
  names: ReadonlyMap<string, Usage>,
): UsedRule {
  const usages = [...names].sort(([, one], [, other]) => other.calls - one.calls);
  const isUsed = (pattern: string) => {
    const { fits, fitsSome } = compileMay([pattern]);
    return usages.some(
      ([
        ,
        {
          call: { item },
        },
      ]) =>
        item.namesBegin === undefined ? fits(item.kind, item.name) : fitsSome(item.namesBegin),
    );
  };
  return {
    rule,
    may,
    used: usages.map(([name, { calls, users }]) => ({ name, calls, users: users.size })),
    // A URI stands in the log without what follows its path, and decoded by nobody.
    unused: may.filter((pattern) => parsePattern(pattern).kind !== 'resource' && !isUsed(pattern)),
  };
}
