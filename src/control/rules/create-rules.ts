// §18.5: rules: one predicate decides what a caller may list, call, get, read, complete and subscribe to.

import { identifyCredential, type UserContext } from '../../http/endpoint/message.ts';
import {
  ASK_ORDER,
  type Policy,
  type PolicyCaller,
  type PolicyItem,
} from '../../mcp/calls/policy.ts';
import { createDecodeResource } from '../../mcp/catalog/resource-text.ts';
import type { ItemKind } from '../../mcp/protocol/list-kinds.ts';
import { type Clock, createTurns } from '../../platform/clock.ts';
import { hashSha256 } from '../../platform/ids.ts';
import { CAPACITY } from '../../platform/memory/capacity.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { type CompiledRule, compileRules } from './compile-rules.ts';
import { joinFacts } from './named-facts.ts';
import type { RuleConfig, RuleDecision, RuledItem, Rules } from './rules.ts';

/** Compiles rules; one that `checkRules` rejects allows nothing. */
export async function createRules(
  { clock }: Pick<Runtime, 'clock'>,
  configs: readonly RuleConfig[],
): Promise<Rules> {
  if (configs.length === 0) return NO_RULES;
  return createJudge(await compileRules(configs), clock);
}

function createJudge(rules: readonly CompiledRule[], clock: Clock): Rules {
  const looksAtTool = rules.some((rule) => rule.looksAtTool);
  const decodeResource = createDecodeResource();
  // The rules that apply to the caller: most apply to others.
  const openMemory = createRuleMemory<Opinion, RulesOfCaller>(clock, (caller) => ({
    addressed: rules
      .map((rule) => ({ rule, decision: rule.address(caller) }))
      .filter(({ decision }) => decision.kind !== 'denied'),
    asking: rules.filter((rule) => rule.ask !== undefined && rule.mayAddress(caller)),
  }));

  function findOpinion(item: RuledItem, caller: PolicyCaller) {
    const known = openMemory(caller);
    const remembered = known.find(item);
    if (remembered !== undefined && (!looksAtTool || isAbout(remembered, item))) return remembered;
    const text = item.kind === 'resource' ? decodeResource(item.name) : item.name;
    const { server, annotations } = item;
    const judgement = text === undefined ? NO_PATTERN : judge(known.facts, item, text, caller);
    const opinion = { ...judgement, server, annotations };
    known.remember(item, opinion);
    return opinion;
  }

  return {
    namedFacts: joinFacts(rules.map((rule) => rule.namedFacts)),
    async prepareFor(caller, work) {
      for (const { rule } of openMemory(caller).facts.addressed) {
        rule.bindCaller(caller);
        if (work.isOver()) await work.next();
      }
    },
    decide(item, caller) {
      const { decision, pending, asked, pendingAsks } = findOpinion(item, caller);
      if (pending.length === 0 && pendingAsks.length === 0) return decision;
      const decided = addAsked(decideByArgs(decision, pending, item, caller), asked);
      if (pendingAsks.length === 0) return decided;
      const isList = item.args === undefined;
      const first = pendingAsks
        .filter((rule) => isList || !rule.isRefuted(item, caller))
        .reduce(strengthen, asked);
      return addAsked(decided, first && isList ? { ...first, isAskedByArgs: true } : first);
    },
    findMemory: openMemory,
    mayAllowSome: (namesBegin, caller) =>
      openMemory(caller).facts.addressed.some(({ rule }) => rule.mayAllowSome(namesBegin, caller)),
    withOwnMemory: () => createJudge(rules, clock),
  };
}

const ALLOWED = { kind: 'allowed' } as const satisfies RuleDecision;
const DENIED: RuleDecision = { kind: 'denied' };

const NO_RULES: Rules = {
  namedFacts: new Map(),
  prepareFor: async () => {},
  decide: () => ALLOWED,
  findMemory: () => NO_RULES,
  mayAllowSome: () => true,
  withOwnMemory: () => NO_RULES,
};

const NO_PATTERN: Judgement = { decision: DENIED, pending: [], asked: undefined, pendingAsks: [] };

/** The decision about an item for a caller, before the arguments of the call are known. */
interface Judgement {
  readonly decision: RuleDecision;
  /** Rules that allow more if the arguments match. */
  readonly pending: readonly AddressedRule[];
  /** Asks for any arguments. */
  readonly asked: Asked | undefined;
  /** Rules that ask an approver of higher precedence if the arguments match. */
  readonly pendingAsks: readonly CompiledRule[];
}

interface Opinion extends Judgement, Pick<RuledItem, 'server' | 'annotations'> {}

type Asked = Required<Pick<RuleDecision & { kind: 'allowed' }, 'ask' | 'askRule'>> & {
  readonly isAskedByArgs?: boolean;
};

interface RulesOfCaller {
  readonly addressed: readonly AddressedRule[];
  /** All of these are evaluated for any allowed call. Without any, the first rule that allows it is enough. */
  readonly asking: readonly CompiledRule[];
}

/** A rule, and its decision for one caller. */
interface AddressedRule {
  readonly rule: CompiledRule;
  readonly decision: RuleDecision;
}

function judge(
  { addressed, asking }: RulesOfCaller,
  item: RuledItem,
  text: string,
  caller: PolicyCaller,
) {
  const allowed = judgeAllowed(addressed, item, text, caller);
  // Connecting a server is not a call to its tools.
  if (asking.length === 0 || item.namesBegin !== undefined || item.kind !== 'tool') return allowed;
  const about = asking.filter((rule) => rule.isAbout(item, text));
  const asked = about
    .filter((rule) => !rule.looksAtArgs && !rule.isRefuted(item, caller))
    .reduce(strengthen, undefined);
  const pendingAsks = about.filter((rule) => rule.looksAtArgs && strengthen(asked, rule) !== asked);
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

/** Among rules with the same approver, the first is named. */
export function strengthen(
  asked: Asked | undefined,
  { ask, place }: Pick<CompiledRule, 'ask' | 'place'>,
): Asked | undefined {
  return ask !== undefined && ASK_ORDER.indexOf(ask) > ASK_ORDER.indexOf(asked?.ask)
    ? { ask, askRule: place }
    : asked;
}

const addAsked = (decision: RuleDecision, asked: Asked | undefined): RuleDecision =>
  asked === undefined || decision.kind !== 'allowed' ? decision : { ...decision, ...asked };

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
  if (decision.kind !== 'denied') return decision;
  for (const { rule } of pending) {
    const rounded = rule.findRounded(item);
    if (rounded !== undefined) return { kind: 'denied', rounded };
  }
  return DENIED;
}

/** One rule that allows is enough; else the first that only lacks a scope. */
const choose = (one: RuleDecision, other: RuleDecision) =>
  other.kind === 'allowed' || one.kind === 'denied' ? other : one;

/**
 * True if the server's annotations are unchanged. They are few and flat; others are compared by identity.
 */
function isAbout({ server, annotations: known }: Opinion, item: RuledItem) {
  const { annotations } = item;
  if (server !== item.server || known === annotations) return server === item.server;
  const names = Object.keys(known);
  return (
    names.length === Object.keys(annotations).length &&
    names.every((name) => Object.hasOwn(annotations, name) && known[name] === annotations[name])
  );
}

/** Undefined without rules, so all callers may use everything. */
export function createRulesPolicy(rules: Rules): Policy | undefined {
  if (rules === NO_RULES) return undefined;
  return {
    prepareFor: rules.prepareFor,
    findMemory: rules.findMemory,
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

// Decisions are cached by token, so that a list of many tools under many rules costs little.

/**
 * Real names are not longer. Longer URIs, which a server may list by the thousand, are cached by their SHA-256.
 */
const MAX_NAME_LENGTH = 256;

/** The cache of one caller. */
interface Caller<Value, Facts> {
  /** Facts that follow from the caller alone. */
  readonly facts: Facts;
  find(item: RuledItem): Value | undefined;
  remember(item: RuledItem, value: Value): void;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
  /** Cached values. */
  count: number;
}

/** Returns the function that finds the cache of a caller. LRU, and evicted when the token expires. */
export function createRuleMemory<Value, Facts>(
  clock: Clock,
  computeFacts: (caller: PolicyCaller) => Facts,
) {
  type Known = Caller<Value, Facts>;
  /** Keyed by token, view and client; the latest caller is last. */
  const callers = new Map<string, Known>();
  /** A request asks about many names: hashes its token once. */
  const opened = new WeakMap<
    UserContext,
    Pick<PolicyCaller, 'clientId' | 'view'> & { readonly it: Known }
  >();
  let total = 0;

  function forget(key: string, caller: Known) {
    callers.delete(key);
    total -= caller.count;
  }

  /** Evicts expired tokens, then the least recently used. */
  function makeRoom() {
    const now = clock.now();
    for (const [key, caller] of callers) if (caller.expiresAt <= now) forget(key, caller);
    for (const [key, caller] of callers) {
      if (total < CAPACITY.decisions && callers.size < CAPACITY.decidedCallers) return;
      forget(key, caller);
    }
  }

  function createCaller(key: string, caller: PolicyCaller, expiresAt: number): Known {
    const kinds: Readonly<Record<ItemKind, Map<string, Value>>> = {
      tool: new Map(),
      prompt: new Map(),
      resource: new Map(),
    };
    /** Keyed by SHA-256, in a separate map, since a URI may look like such a key. */
    const longUris = new Map<string, Value>();
    function findPlace({ kind, name }: RuledItem) {
      if (name.length <= MAX_NAME_LENGTH) return { values: kinds[kind], id: name };
      return kind === 'resource' ? { values: longUris, id: hashSha256(name) } : undefined;
    }
    const created: Known = {
      expiresAt,
      facts: computeFacts(caller),
      find(item) {
        const place = findPlace(item);
        return place?.values.get(place.id);
      },
      remember(item, value) {
        if (total >= CAPACITY.decisions) makeRoom();
        // It has been evicted in the meantime.
        if (callers.get(key) !== created) return;
        const place = findPlace(item);
        if (place === undefined) return;
        if (!place.values.has(place.id)) {
          total += 1;
          created.count += 1;
        }
        place.values.set(place.id, value);
      },
      count: 0,
    };
    return created;
  }

  function find(caller: PolicyCaller, now: number): Known {
    const { user, clientId, view = '' } = caller;
    // Digests and view names contain no spaces: the key is unambiguous for any client.
    const key = user === undefined ? view : `${identifyCredential(user)} ${view} ${clientId ?? ''}`;
    const expiresAt = readExpiry(user);
    const known = callers.get(key);
    if (expiresAt <= now) {
      if (known !== undefined) forget(key, known);
      return createCaller(key, caller, expiresAt);
    }
    if (known === undefined && callers.size >= CAPACITY.decidedCallers) makeRoom();
    const found = known ?? createCaller(key, caller, expiresAt);
    callers.delete(key);
    callers.set(key, found);
    return found;
  }

  return function open(caller: PolicyCaller) {
    const { user, clientId, view } = caller;
    const known = user && opened.get(user);
    if (known !== undefined && known.clientId === clientId && known.view === view) return known.it;
    const it = find(caller, clock.now());
    if (user !== undefined) opened.set(user, { clientId, view, it });
    return it;
  };
}

/** Without an expiry of the token, nothing is cached beyond its request. */
function readExpiry(user: UserContext | undefined) {
  // Grants are cached by version.
  if (user === undefined || user.grant !== undefined) return Number.POSITIVE_INFINITY;
  const { exp } = user.claims;
  return typeof exp === 'number' ? exp * 1000 : 0;
}

// §22.4: preview for operators: the tools that a user would see, and the rule that allows each. Without a token or requests to
// servers.

export interface PreviewRequest {
  readonly caller: PolicyCaller;
  readonly skip: number;
  readonly limit: number;
}

export async function previewAccess(
  clock: Clock,
  compiled: Rules,
  listed: { readonly tools: readonly PolicyItem[]; readonly personal: readonly string[] },
  { caller, skip, limit }: PreviewRequest,
) {
  // A separate cache: a preview must not affect real callers.
  const rules = compiled.withOwnMemory();
  const work = createTurns(clock);
  await rules.prepareFor(caller, work);
  const judged: { name: string; server: string; decision: RuleDecision }[] = [];
  for (const { name, server, annotations } of listed.tools) {
    const item = { kind: 'tool', name, server, annotations, args: undefined } as const;
    judged.push({ name, server, decision: rules.decide(item, caller) });
    if (work.isOver()) await work.next();
  }
  return {
    total: judged.length,
    /** The number of visible tools. */
    seen: judged.filter(({ decision }) => decision.kind !== 'denied').length,
    /** In the order of the joined list. */
    tools: judged.slice(skip, skip + limit),
    /** Servers whose tools differ between users: unknown here. */
    personal: listed.personal,
  };
}
