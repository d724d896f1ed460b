// §18.5: one predicate decides what a caller may list, call, get, read, complete and subscribe to.

import { ASK_ORDER, type Policy, type PolicyCaller } from '../../mcp/calls/policy.ts';
import type { RuleConfig, RuleDecision, RuledItem, Rules } from '../../mcp/calls/rules.ts';
import { createDecodeResource } from '../../mcp/catalog/resource-text.ts';
import type { Clock } from '../../platform/clock.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { type CompiledRule, compileRules } from './compile-rules.ts';
import { joinFacts } from './named-facts.ts';
import { createRuleMemory } from './rule-memory.ts';

/** Rules that `checkRules` has nothing against; one that it has something against allows nothing. */
export async function createRules(
  { clock }: Pick<Runtime, 'clock'>,
  configs: readonly RuleConfig[],
): Promise<Rules> {
  if (configs.length === 0) return NO_RULES;
  return createJudge(await compileRules(configs), clock);
}

function createJudge(rules: readonly CompiledRule[], clock: Clock): Rules {
  const looksAtTool = rules.some((rule) => rule.looksAtTool);
  /** Those that say something to the caller: most rules are about others. */
  const selectRules = (caller: PolicyCaller): RulesOfCaller => ({
    addressed: rules
      .map((rule) => ({ rule, decision: rule.address(caller) }))
      .filter(({ decision }) => decision.kind !== 'denied'),
    asking: rules.filter((rule) => rule.ask !== undefined && rule.mayAddress(caller)),
  });
  const decodeResource = createDecodeResource();
  const memory = createRuleMemory<Opinion, RulesOfCaller>(clock, selectRules);

  function findOpinion(item: RuledItem, caller: PolicyCaller): Opinion {
    const known = memory.open(caller);
    const remembered = known.find(item);
    if (remembered !== undefined && (!looksAtTool || isAbout(remembered, item))) return remembered;
    const text = item.kind === 'resource' ? decodeResource(item.name) : item.name;
    const opinion =
      text === undefined
        ? { ...pick(item), ...NO_PATTERN }
        : { ...judge(known.facts, item, text, caller), ...pick(item) };
    known.remember(item, opinion);
    return opinion;
  }

  return {
    namedFacts: joinFacts(rules.map((rule) => rule.namedFacts)),
    async prepareFor(caller, work) {
      for (const { rule } of memory.open(caller).facts.addressed) {
        rule.bindCaller(caller);
        if (work.isOver()) await work.next();
      }
    },
    decide(item, caller) {
      const { decision, pending, asked, pendingAsks } = findOpinion(item, caller);
      if (pending.length === 0 && pendingAsks.length === 0) return decision;
      const decided =
        pending.length === 0
          ? decision
          : addAsked(decideByArgs(decision, pending, item, caller), asked);
      return pendingAsks.length === 0
        ? decided
        : addAsked(decided, askByArgs(asked, pendingAsks, item, caller));
    },
    mayAllowSome: (namesBegin, caller) =>
      memory.open(caller).facts.addressed.some(({ rule }) => rule.mayAllowSome(namesBegin, caller)),
    withOwnMemory: () => createJudge(rules, clock),
  };
}

const ALLOWED = { kind: 'allowed' } as const satisfies RuleDecision;
const DENIED: RuleDecision = { kind: 'denied' };

const NO_RULES: Rules = {
  namedFacts: new Map(),
  prepareFor: async () => {},
  decide: () => ALLOWED,
  mayAllowSome: () => true,
  withOwnMemory: () => NO_RULES,
};

/** For what no pattern fits. */
const NO_PATTERN: Judgement = {
  decision: DENIED,
  pending: [],
  asked: undefined,
  pendingAsks: [],
};

/** The rules' judgement of an item for a caller, but for what depends on the arguments of the call. */
interface Judgement {
  readonly decision: RuleDecision;
  /** Rules that say more, if the arguments fulfil them. */
  readonly pending: readonly AddressedRule[];
  /** Asked whatever the arguments are. */
  readonly asked: Asked | undefined;
  /** Rules that ask somebody else before that one, if the arguments fulfil them. */
  readonly pendingAsks: readonly CompiledRule[];
}

interface Opinion extends Judgement, Pick<RuledItem, 'server' | 'annotations'> {}

type Asked = Required<Pick<RuleDecision & { kind: 'allowed' }, 'ask' | 'askRule'>> & {
  readonly isAskedByArgs?: boolean;
};

interface RulesOfCaller {
  readonly addressed: readonly AddressedRule[];
  /** Whichever rule allows a call, all of these are looked at. Without any, the first that allows it is enough. */
  readonly asking: readonly CompiledRule[];
}

/** A rule, and what it says to one caller of all that it is about. */
interface AddressedRule {
  readonly rule: CompiledRule;
  readonly decision: RuleDecision;
}

function judge(
  { addressed, asking }: RulesOfCaller,
  item: RuledItem,
  text: string,
  caller: PolicyCaller,
): Judgement {
  const allowed = judgeAllowed(addressed, item, text, caller);
  // To connect a server is no call of a tool of it.
  if (asking.length === 0 || item.namesBegin !== undefined || item.kind !== 'tool') return allowed;
  const { asked, pendingAsks } = judgeAsked(asking, item, text, caller);
  return { ...allowed, decision: addAsked(allowed.decision, asked), asked, pendingAsks };
}

function judgeAllowed(
  rules: readonly AddressedRule[],
  item: RuledItem,
  text: string,
  caller: PolicyCaller,
): Judgement {
  const pending: AddressedRule[] = [];
  let decision = DENIED;
  for (const addressed of rules) {
    const { rule } = addressed;
    if (item.namesBegin !== undefined) {
      if (rule.mayHoldFor(item.namesBegin, item, caller))
        decision = choose(decision, addressed.decision);
      continue;
    }
    if (!rule.isAbout(item, text)) continue;
    if (rule.looksAtArgs) pending.push(addressed);
    else if (rule.holds(item, caller)) decision = choose(decision, addressed.decision);
    if (decision.kind === 'allowed') return { ...NO_PATTERN, decision };
  }
  return { ...NO_PATTERN, decision, pending };
}

function judgeAsked(
  asking: readonly CompiledRule[],
  item: RuledItem,
  text: string,
  caller: PolicyCaller,
): Pick<Judgement, 'asked' | 'pendingAsks'> {
  const about = asking.filter((rule) => rule.isAbout(item, text));
  const asked = about
    .filter((rule) => !rule.looksAtArgs && rule.mayHold(item, caller))
    .reduce(strengthen, undefined);
  const pendingAsks = about.filter((rule) => rule.looksAtArgs && strengthen(asked, rule) !== asked);
  return { asked, pendingAsks };
}

/** Among rules that ask the same one, the first says so. */
export function strengthen(
  asked: Asked | undefined,
  { ask, place }: Pick<CompiledRule, 'ask' | 'place'>,
): Asked | undefined {
  return ask !== undefined && ASK_ORDER.indexOf(ask) > ASK_ORDER.indexOf(asked?.ask)
    ? { ask, askRule: place }
    : asked;
}

function askByArgs(
  first: Asked | undefined,
  pendingAsks: readonly CompiledRule[],
  item: RuledItem,
  caller: PolicyCaller,
): Asked | undefined {
  const isList = item.args === undefined;
  const asked = pendingAsks
    .filter((rule) => isList || rule.mayHold(item, caller))
    .reduce(strengthen, first);
  return isList && asked !== undefined ? { ...asked, isAskedByArgs: true } : asked;
}

const addAsked = (decision: RuleDecision, asked: Asked | undefined): RuleDecision =>
  asked === undefined || decision.kind !== 'allowed' ? decision : { ...decision, ...asked };

const pick = ({ server, annotations }: RuledItem) => ({ server, annotations });

function decideByArgs(
  first: RuleDecision,
  pending: readonly AddressedRule[],
  item: RuledItem,
  caller: PolicyCaller,
): RuleDecision {
  const isList = item.args === undefined;
  let decision = first;
  for (const { rule, decision: said } of pending) {
    if (isList || rule.holds(item, caller)) decision = choose(decision, said);
    if (decision.kind === 'allowed') return isList ? { ...decision, isByArgs: true } : decision;
  }
  return decision.kind === 'denied' ? tellRounded(pending, item) : decision;
}

function tellRounded(pending: readonly AddressedRule[], item: RuledItem): RuleDecision {
  for (const { rule } of pending) {
    const rounded = rule.findRounded(item);
    if (rounded !== undefined) return { kind: 'denied', rounded };
  }
  return DENIED;
}

/** Whoever is allowed something by one rule needs no other; else the first rule that lacks a scope alone. */
const choose = (one: RuleDecision, other: RuleDecision): RuleDecision =>
  other.kind === 'allowed' || one.kind === 'denied' ? other : one;

/** True if the server says of the item what it said then. */
const isAbout = ({ server, annotations }: Opinion, item: RuledItem): boolean =>
  server === item.server && hasSameMembers(annotations, item.annotations);

/** Annotations are few and flat; of others the same object is asked for. */
function hasSameMembers(one: JsonObject, other: JsonObject): boolean {
  if (one === other) return true;
  const names = Object.keys(one);
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => Object.hasOwn(other, name) && one[name] === other[name])
  );
}

// As one of the policies.

/** Undefined without rules: then everybody may use everything. */
export function createRulesPolicy(rules: Rules): Policy | undefined {
  if (rules === NO_RULES) return undefined;
  return {
    prepareFor: rules.prepareFor,
    mayAllowSome: rules.mayAllowSome,
    judge({ kind, name, server, annotations, namesBegin, isOpen }, caller, args) {
      if (isOpen === true) return ALLOWED;
      const decision = rules.decide({ kind, name, server, annotations, namesBegin, args }, caller);
      if (decision.kind !== 'denied') return decision;
      const { rounded } = decision;
      return rounded === undefined ? DENIED_BY_RULES : { ...DENIED_BY_RULES, rounded };
    },
  };
}

const DENIED_BY_RULES = { kind: 'denied', by: 'rules' } as const;
