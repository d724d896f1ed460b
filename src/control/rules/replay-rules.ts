// §28: replays recorded calls against rules; some facts about a call are no longer known.

import type { UserContext } from '../../http/endpoint/message.ts';
import type { PolicyCaller } from '../../mcp/calls/policy.ts';
import { createDecodeResource } from '../../mcp/catalog/resource-text.ts';
import { isObject, isStringArray, type JsonObject } from '../../platform/json.ts';
import { type CompiledRule, compileRules, compileWho } from './compile-rules.ts';
import { strengthen } from './create-rules.ts';
import { dropMissing, listUnknown, nameFacts } from './named-facts.ts';
import type { RuleConfig, RuleDecision, RuledItem, RuleSubject } from './rules.ts';

/** A call of the audit log. */
export interface LoggedCall {
  readonly item: Omit<RuledItem, 'annotations' | 'args'>;
  /** True if the log has the complete name. */
  readonly isWhole: boolean;
  /** `sub`; undefined for an anonymous call. */
  readonly user: string | undefined;
  /** The issuer of that user; undefined for those of `OIDC_ISSUER`. */
  readonly issuer: string | undefined;
  /** The facts written by `describeNamed`; `{}` without `AUDIT_CLAIMS`. */
  readonly described: JsonObject;
  readonly clientId: string | undefined;
  readonly view: string | undefined;
}

export type ReplayVerdict =
  | (Extract<RuleDecision, { kind: 'allowed' }> & {
      /** Rules that may or may not ask an approver of higher precedence. */
      readonly mayAsk?: Untold;
    })
  | Extract<RuleDecision, { kind: 'scopes_missing' }>
  | {
      readonly kind: 'denied';
      /** Positions of the rules about this name that apply to other callers, or whose conditions are false. */
      readonly about: readonly string[];
    }
  | ({ readonly kind: 'unknown' } & Untold);

interface Untold {
  /** Facts missing in the log, as conditions name them: `args`, `user.claims.level`. */
  readonly missing: readonly string[];
  /** Positions of the rules that name them. */
  readonly rules: readonly string[];
}

/** Expects rules that `checkRules` accepts. */
export async function createReplay(
  configs: readonly RuleConfig[],
): Promise<(call: LoggedCall) => ReplayVerdict> {
  const rules = (await compileRules(configs)).map(toReplayedRule);
  const decodeResource = createDecodeResource();

  return function replay(call) {
    const { item, isWhole, described, clientId, view } = call;
    if (rules.length === 0 || item.isOpen === true) return ALLOWED;
    const asked = {
      // Not in the log.
      item: { ...item, annotations: {}, args: undefined },
      text: item.kind === 'resource' ? decodeResource(item.name) : item.name,
      caller: { user: toUser(call), clientId, view },
      isWhole,
      described,
    };
    const said = rules.map((rule) => ({ rule, opinion: rule.judge(asked) }));
    for (const { opinion } of said) {
      if (opinion.kind === 'allowed') return { ...opinion, ...askFirst(asked) };
    }
    const untold = findUntold(said);
    if (untold !== undefined) return { kind: 'unknown', ...untold };
    for (const { opinion } of said) if (opinion.kind === 'scopes_missing') return opinion;
    const about = said.filter(({ opinion }) => opinion.kind === 'denied' && opinion.isAbout);
    return { kind: 'denied', about: about.map(({ rule }) => rule.place) };
  };

  function askFirst(call: AskedCall) {
    // Connecting a server is not a call to its tools.
    if (call.item.kind !== 'tool' || call.item.namesBegin !== undefined) return {};
    const said = rules
      .filter(({ ask }) => ask !== undefined)
      .map((rule) => ({ rule, opinion: rule.judgeAsk(call) }));
    const asked = said
      .filter(({ opinion }) => opinion.kind === 'allowed')
      .reduce<ReturnType<typeof strengthen>>((one, { rule }) => strengthen(one, rule), undefined);
    const mayAsk = findUntold(said.filter(({ rule }) => strengthen(asked, rule) !== asked));
    return { ...asked, ...(mayAsk && { mayAsk }) };
  }
}

/** A call, prepared for evaluation. */
interface AskedCall extends Pick<LoggedCall, 'isWhole' | 'described'> {
  readonly item: RuledItem;
  /** The text that patterns are compared with. */
  readonly text: string | undefined;
  readonly caller: PolicyCaller;
}

function findUntold(said: readonly { readonly rule: ReplayedRule; readonly opinion: Opinion }[]) {
  const untold = said.flatMap(({ rule, opinion }) =>
    opinion.kind === 'unknown' ? [{ rule, missing: opinion.missing }] : [],
  );
  if (untold.length === 0) return undefined;
  return {
    missing: [...new Set(untold.flatMap(({ missing }) => missing))],
    rules: untold.map(({ rule }) => rule.place),
  };
}

const ALLOWED: ReplayVerdict = { kind: 'allowed' };

type Opinion =
  | Exclude<RuleDecision, { kind: 'denied' }>
  | { readonly kind: 'denied'; readonly isAbout: boolean }
  | { readonly kind: 'unknown'; readonly missing: readonly string[] };

type ReplayedRule = ReturnType<typeof toReplayedRule>;

const FOR_OTHERS: Opinion = { kind: 'denied', isAbout: true };
const ABOUT_OTHERS: Opinion = { kind: 'denied', isAbout: false };

function toReplayedRule(rule: CompiledRule) {
  const { who, place, ask, namedFacts, looksAtArgs, looksAtTool, looksAtAnnotations } = rule;
  const parts = who === 'everyone' ? [] : splitSubject(who);

  /** Undefined if the log has only part of the name, which is not enough to tell. */
  function findIsAbout({ item, isWhole, text }: AskedCall) {
    if (item.namesBegin !== undefined) return rule.fitsSome(item.namesBegin);
    if (!isWhole) return rule.hasKind(item.kind) ? undefined : false;
    return text !== undefined && rule.isAbout(item, text);
  }

  function listMissing({ item, described, caller }: AskedCall) {
    const ofUser = caller.user === undefined ? [] : listUnknown(described, namedFacts);
    if (item.namesBegin !== undefined) return ofUser;
    return [
      ...ofUser,
      ...(looksAtArgs && item.kind !== 'resource' ? ['args'] : []),
      ...(looksAtAnnotations && item.kind === 'tool' ? ['tool.annotations'] : []),
    ];
  }

  /** Undefined if all facts that the rule uses are known. An unknown client matches if `ifUnknown` is true. */
  function judgeUnknown(call: AskedCall, ifUnknown: boolean): Opinion | undefined {
    const isAbout = findIsAbout(call);
    if (isAbout === false) return ABOUT_OTHERS;
    const { caller } = call;
    const isForOthers = parts.some(
      ({ subject, names }) =>
        (caller.user === undefined || listUnknown(call.described, names).length === 0) &&
        !subject.fits(caller, ifUnknown),
    );
    if (isForOthers) return FOR_OTHERS;
    const missing = listMissing(call);
    if (missing.length === 0 && isAbout !== undefined) return undefined;
    const known = missing.some((one) => one.startsWith('user.'))
      ? { ...caller, user: undefined }
      : caller;
    const isItemKnown = isAbout !== undefined && !missing.includes('tool.annotations');
    return rule.isRefuted(isItemKnown ? call.item : undefined, known)
      ? FOR_OTHERS
      : { kind: 'unknown', missing: [...missing, ...(isAbout === undefined ? ['name'] : [])] };
  }

  function judgeKnown({ item, caller }: AskedCall) {
    // Conditions on tools count as true for a tool for logging in.
    const countsAsFulfilled = item.namesBegin !== undefined && (looksAtTool || looksAtArgs);
    if (!countsAsFulfilled && !rule.holds(item, caller)) return FOR_OTHERS;
    const decision = rule.address(caller);
    return decision.kind === 'denied' ? FOR_OTHERS : decision;
  }

  const judgeKnownAsk = ({ item, caller }: AskedCall) =>
    rule.mayAddress(caller) && !rule.isRefuted(item, caller) ? ASKS : FOR_OTHERS;
  return {
    place,
    ask,
    judge: (call: AskedCall) => judgeUnknown(call, false) ?? judgeKnown(call),
    /** `allowed` if the rule asks for approval of the call. */
    judgeAsk: (call: AskedCall) => judgeUnknown(call, true) ?? judgeKnownAsk(call),
  };
}

const ASKS: Opinion = { kind: 'allowed' };

/** Member by member: one known mismatch is enough. */
const splitSubject = (who: RuleSubject) =>
  Object.entries(who).map(([name, value]) => {
    const part: RuleSubject = { [name]: value };
    return { subject: compileWho(part), names: nameFacts(part, undefined) };
  });

/** The user of a token with these claims, as far as rules use it. */
function toUser({ user, described }: LoggedCall): UserContext | undefined {
  if (user === undefined) return undefined;
  const {
    email,
    email_verified: emailVerified,
    name,
    groups,
    scopes,
    claims,
  } = dropMissing(described);
  const known = isObject(claims) ? claims : {};
  // Rules do not distinguish the two scope claims.
  const place = known.scp === undefined ? 'scp' : 'scope';
  return {
    sub: user,
    ...(typeof email === 'string' && { email }),
    ...(typeof emailVerified === 'boolean' && { emailVerified }),
    ...(typeof name === 'string' && { name }),
    ...(isStringArray(groups) && { groups }),
    claims:
      isStringArray(scopes) && known[place] === undefined ? { ...known, [place]: scopes } : known,
  };
}
