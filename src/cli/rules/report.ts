// The output of `postern rules test`: one line per item, and general notes.

import { builtInCatalog } from '../../built-in/index.ts';
import { createNaming } from '../../catalog/prepare-list.ts';
import { compileMay, parsePattern } from '../../control/rules/compile-rules.ts';
import type { LoggedCall, ReplayVerdict } from '../../control/rules/replay-rules.ts';
import type { RuleConfig, RuleDecision, RuledItem } from '../../control/rules/rules.ts';
import type { GatewayFile } from '../../gateway/configuration/gateway-file.ts';
import type { UserContext } from '../../http/endpoint/message.ts';
import type { AskWhom } from '../../mcp/calls/policy.ts';
import { listTools, serveOwnCatalog } from '../../mcp/catalog/own-catalog.ts';
import { findNearestName } from '../../platform/nearest-name.ts';
import { alignColumns, toVisibleName } from '../command-line/terminal.ts';
import { findLockPath, readLockFile } from '../setup/lock-file-on-disk.ts';
import type { CallResult } from './read-audit-log.ts';

export interface JudgedItem {
  readonly item: RuledItem;
  readonly decision: RuleDecision;
  /** For a denied call: the rule that allows the call with other arguments. */
  readonly withOtherArgs?: string | undefined;
}

interface Asked {
  readonly path: string;
  /** `"rules": "everyone"`. */
  readonly meansNoRules: boolean;
  readonly user: UserContext;
  readonly clientId: string | undefined;
  /** Notes about no particular item. */
  readonly notes: readonly string[];
}

/** One JSON object per item, for programs. */
export function toJson(items: readonly JudgedItem[]): string {
  const rows = items.map(({ item: { kind, name, server }, decision, withOtherArgs }) => {
    const {
      ask,
      askRule = null,
      isByArgs,
      isAskedByArgs,
    } = decision.kind === 'allowed' ? decision : {};
    return {
      kind,
      name,
      server,
      decision: decision.kind,
      byArguments: isByArgs || undefined,
      scopes: decision.kind === 'scopes_missing' ? decision.scopes : undefined,
      rule: decision.kind === 'denied' ? null : (decision.rule ?? null),
      ask,
      askRule: ask && askRule,
      askByArguments: (ask && isAskedByArgs) || undefined,
      ruleWithOtherArguments: withOtherArgs,
    };
  });
  return JSON.stringify(rows, undefined, 2);
}

export function renderItems(items: readonly JudgedItem[], asked: Asked): string {
  const rows = items.map((judged) => [
    describeDecision(judged.decision),
    toVisibleName(toRuleName(judged.item)),
    describeRule(judged, asked),
  ]);
  const { path, user, clientId } = asked;
  const seen = items.filter(({ decision }) => decision.kind !== 'denied').length;
  const who = toVisibleName(user.email ?? (user.sub === '' ? 'Somebody' : user.sub));
  const client = clientId === undefined ? 'an unknown client' : `client ${toVisibleName(clientId)}`;
  const head = `${who} with ${client} sees ${seen} of ${items.length}, by ${path}:`;
  const notes = asked.notes.length === 0 ? [] : ['', ...asked.notes];
  return [head, '', ...alignColumns(rows), ...notes].join('\n');
}

function describeDecision(decision: RuleDecision) {
  if (decision.kind === 'denied') return 'denied';
  if (decision.kind === 'scopes_missing') return `needs scope ${decision.scopes.join(' ')}`;
  return decision.isByArgs === true ? 'depends on its arguments' : 'allowed';
}

function describeRule({ decision, withOtherArgs }: JudgedItem, { meansNoRules }: Asked) {
  if (decision.kind === 'denied')
    return withOtherArgs === undefined
      ? 'no rule allows it'
      : `no rule allows it with these arguments; with others ${withOtherArgs} does`;
  const rule = decision.rule ?? (meansNoRules ? 'rules is "everyone"' : 'there are no rules');
  if (decision.kind !== 'allowed' || decision.ask === undefined) return rule;
  // Says who must approve each call (§27), and which rule requires it.
  const whether = decision.isAskedByArgs === true ? ', depending on its arguments' : '';
  return `${rule}; ${ASKED[decision.ask]} first${whether}: ${decision.askRule ?? ''}`;
}

const ASKED = {
  user: 'the user is asked in their client',
  page: 'the user is asked at /approvals',
  operator: 'an operator is asked',
} as const;

/** One line for each denied tool whose name resembles a known name. No server is queried. */
export async function suggestNames(
  judged: readonly JudgedItem[],
  path: string,
  file: GatewayFile,
): Promise<readonly string[]> {
  const refused = judged.flatMap(({ item, decision }) =>
    item.kind === 'tool' && decision.kind === 'denied' ? [item.name] : [],
  );
  if (refused.length === 0) return [];
  // Tools of the gateway itself, tools in the lock, and names without an asterisk in rules.
  const ownTools = file.builtIn === false ? [] : await listTools(serveOwnCatalog(builtInCatalog));
  const { join } = createNaming(file);
  const lock = readLockFile(findLockPath(path));
  const locked = file.servers.flatMap((server) =>
    [...(lock?.servers.get(server.name)?.tools.keys() ?? [])].map((name) => join(server, name)),
  );
  const ruled = file.rules.flatMap(({ may }) =>
    may
      .map(parsePattern)
      .flatMap(({ kind, glob }) => (kind === 'tool' && !glob.includes('*') ? [glob] : [])),
  );
  const known = [...ownTools.map(({ name }) => String(name)), ...locked, ...ruled];
  return refused.flatMap((name) => {
    const nearest = known.includes(name) ? undefined : findNearestName(name, known);
    return nearest === undefined
      ? []
      : [
          `Did you mean ${nearest}? Neither a rule nor the lock names ${name}, and no server was asked.`,
        ];
  });
}

/**
 * Explains why rules about an e-mail address do not match: unlike other claims, this one may be present and still be withheld
 * (§2.3). One line, or none if no rule uses the address or nothing is missing.
 */
export function findMissingEmail({ rules }: GatewayFile, user: UserContext): readonly string[] {
  const whens = rules.map(({ when = '' }) => when);
  const namesAddress =
    whens.some((when) => /\bemail\b/.test(when)) ||
    rules.some(({ who }) => who !== 'everyone' && who.claims?.email !== undefined);
  const namesVerified = whens.some((when) => /\bemail_verified\b/.test(when));
  if (!namesAddress && !namesVerified) return [];
  if (user.email === undefined) {
    const what =
      user.claims.email === undefined ? 'have no "email"' : 'have an "email" that is not text';
    return [`The claims ${what}, so rules see neither user.email nor user.email_verified.`];
  }
  if (user.emailVerified === false) {
    const claim = user.claims.email_verified === undefined ? 'xms_edov' : 'email_verified';
    return [
      `The claims do not say that the address is verified ("${claim}" is ${JSON.stringify(user.claims[claim])}), so rules see no user.email.`,
    ];
  }
  return user.emailVerified === undefined && namesVerified
    ? [
        'The claims do not say whether the address is verified (no "email_verified", nor "xms_edov" of Microsoft Entra), so rules see user.email, but no user.email_verified.',
      ]
    : [];
}

/**
 * Patterns of rules that match nothing: most are misspelled, or belong to a server that could not be asked. Resources are
 * skipped: not every readable resource is listed.
 */
export function findIdlePatterns(
  { rules }: GatewayFile,
  items: readonly RuledItem[],
): readonly string[] {
  return rules.flatMap(({ may, place }) =>
    may
      .filter((pattern) => parsePattern(pattern).kind !== 'resource')
      .filter((pattern) => {
        const { fits: mayUse } = compileMay([pattern]);
        return !items.some(({ kind, name }) => mayUse(kind, name));
      })
      .map((pattern) => `${JSON.stringify(pattern)} matches nothing: ${place}`),
  );
}

// §28: decisions for many logged calls, counted by rule, user and name.

/** Calls by one user, with one name and one result. */
export interface CountedCalls {
  readonly kind: LoggedCall['item']['kind'];
  readonly name: string;
  /** `null` for anonymous calls. */
  readonly user: string | null;
  /** Absent for users of `OIDC_ISSUER`. */
  readonly issuer?: string | undefined;
  readonly rules: readonly string[];
  calls: number;
}

export type DecisionChange = 'refused' | 'allowed' | 'needs_scope';

export interface UnknownCalls extends CountedCalls {
  /** Facts missing in the log, as conditions name them. */
  readonly missing: readonly string[];
}

export type UsedRule = ReturnType<typeof toUsedRule>;

export type TallyResult = ReturnType<ReturnType<typeof createTally>['finish']>;

export function createTally(rules: readonly RuleConfig[]) {
  /** `calls` were evaluated both then and now; the others were stopped by something other than rules, or were never evaluated. */
  const numbers = { calls: 0, stayAllowed: 0, stayRefused: 0, stopped: 0, unjudged: 0 };
  const changes = new Map<string, CountedCalls & { readonly change: DecisionChange }>();
  const unknown = new Map<string, UnknownCalls>();
  /** Allowed calls that now require approval first (§27). */
  const asked = new Map<string, CountedCalls & { readonly ask: AskWhom }>();
  /** Allowed calls that may or may not require approval. */
  const mayBeAsked = new Map<string, UnknownCalls>();
  const used = new Map(rules.map(({ place }) => [place, new Map<string, Usage>()]));

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
        const names = result === 'allowed' ? used.get(verdict.rule ?? '') : undefined;
        if (names !== undefined) {
          const name = toRuleName(item);
          const usage = names.get(name) ?? { call, calls: 0, users: new Set() };
          names.set(name, usage);
          usage.calls += 1;
          usage.users.add(JSON.stringify([call.user, issuer]));
        }
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
      changes: sort(changes),
      unknown: sort(unknown),
      asked: sort(asked),
      mayBeAsked: sort(mayBeAsked),
      rules: rules.map(({ place, may }) => toUsedRule(place, may, used.get(place) ?? new Map())),
    }),
  };
}

const CHANGES: Readonly<Record<Exclude<ReplayVerdict['kind'], 'unknown'>, DecisionChange>> = {
  allowed: 'allowed',
  denied: 'refused',
  scopes_missing: 'needs_scope',
};

/** The rules that allow the call, or for a denied call those about the item. */
function listRules(verdict: Exclude<ReplayVerdict, { kind: 'unknown' }>) {
  if (verdict.kind === 'denied') return verdict.about;
  return verdict.rule === undefined ? [] : [verdict.rule];
}

function add<Counted extends CountedCalls>(all: Map<string, Counted>, counted: Counted) {
  const key = JSON.stringify(counted);
  const known = all.get(key) ?? counted;
  all.set(key, known);
  known.calls += 1;
}

const sort = <Counted extends CountedCalls>(all: ReadonlyMap<string, Counted>) =>
  [...all.values()].sort(
    (one, other) => other.calls - one.calls || (one.name < other.name ? -1 : 1),
  );

interface Usage {
  readonly call: LoggedCall;
  calls: number;
  readonly users: Set<string>;
}

/** The form used in `may` of a rule. */
export const toRuleName = ({ kind, name }: Pick<CountedCalls, 'kind' | 'name'>): string =>
  kind === 'tool' ? name : `${kind}:${name}`;

/** The calls that a rule allowed, counting only those that had been allowed before. */
function toUsedRule(rule: string, may: readonly string[], names: ReadonlyMap<string, Usage>) {
  const usages = [...names].sort(([, one], [, other]) => other.calls - one.calls);
  const isUsed = (pattern: string) => {
    const { fits, fitsSome } = compileMay([pattern]);
    return usages.some(([, { call }]) => {
      const { kind, name, namesBegin } = call.item;
      return namesBegin === undefined ? fits(kind, name) : fitsSome(namesBegin);
    });
  };
  return {
    rule,
    may,
    used: usages.map(([name, { calls, users }]) => ({ name, calls, users: users.size })),
    /** The rule's patterns that match none of these calls. */
    // The log has URIs without query or fragment, and not decoded.
    unused: may.filter((pattern) => parsePattern(pattern).kind !== 'resource' && !isUsed(pattern)),
  };
}
