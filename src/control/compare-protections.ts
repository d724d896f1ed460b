// §18.1: what a configuration file protects less than the one that is served: an `ask`, a limit of a rule, or a guard that is
// gone, or is about nothing any more. It is told by patterns: what nobody may use any more, nobody has to be asked about.

import { isDeepStrictEqual } from 'node:util';
import type { GuardConfig, GuardsConfig } from '../mcp/calls/guards.ts';
import { ASK_ORDER, type RuleConfig, type RulesConfig } from '../mcp/calls/policy.ts';
import { compileGlob, readGlobHead } from '../platform/glob.ts';
import { quote } from '../platform/text.ts';
import { bindGuard } from './guards/guard-config.ts';
import { parsePattern } from './rules/compile-rules.ts';

/** The protections of one file. No secret is in it. */
export const describeProtections = (
  { rules, guards = [] }: RulesConfig & GuardsConfig,
  starts: Readonly<Record<string, string>>,
) => ({
  rules,
  /** `what` says which guard it is, whatever it is called. */
  guards: guards.map(({ use, ...guard }) => ({ ...guard, what: bindGuard(use).describe() })),
  /** The beginning of the names of each server. */
  starts,
});

export type Protections = ReturnType<typeof describeProtections>;

/** True if the pattern of the rule at this place, or of the guard of this name, is known to fit nothing. */
export type IsIdle = (subject: string, pattern: string) => boolean;

interface Compared extends Protections {
  readonly isIdle: IsIdle;
}

/** Sentences, each with the place of what is gone. */
export const findFewerProtections = (served: Compared, next: Compared): readonly string[] => [
  ...findLostAsks(served, next),
  ...findLostLimits(served, next),
  ...findLostGuards(served, next),
];

function findLostAsks(served: Compared, next: Compared): readonly string[] {
  return served.rules.flatMap((rule) =>
    rule.may.flatMap((pattern) => {
      const now = translate(rule.place, pattern, served, next);
      if (rule.ask === undefined || now === undefined) return [];
      const asks = ({ ask }: RuleConfig) =>
        ask !== undefined && ASK_ORDER.indexOf(ask) >= ASK_ORDER.indexOf(rule.ask);
      const isFree = next.rules.some(
        (other) => !asks(other) && other.may.some((one) => mayMeet(one, now)),
      );
      // Nobody can tell which of two conditions holds more often.
      const isAsked = next.rules.some(
        (other) =>
          asks(other) &&
          (other.when === undefined || rule.when !== undefined) &&
          namesAsMany(other.who, rule.who) &&
          coversNow(other.place, other.may, now, next),
      );
      return !isFree || isAsked
        ? []
        : [
            `The "ask" for ${quote(pattern, MAX_SHOWN)} (before: ${rule.place}) is gone or matches nothing, so no approval would be required.`,
          ];
    }),
  );
}

function namesAsMany(one: RuleConfig['who'], other: RuleConfig['who']) {
  if (one === 'everyone' || other === 'everyone') return one === 'everyone';
  const others = new Map(Object.entries(other));
  return Object.entries(one).every(([member, value]) => {
    const former = others.get(member);
    return Array.isArray(value) && Array.isArray(former)
      ? former.every((each) => value.includes(each))
      : isDeepStrictEqual(value, former);
  });
}

/** Rules in the place of a former one that let more of it through: without its `when`, or a member of its `who`. */
function findLostLimits(served: Compared, next: Compared): readonly string[] {
  const former = served.rules.map((rule) => ({
    ...rule,
    limits: listLimits(rule),
    now: rule.may.flatMap((pattern) => translate(rule.place, pattern, served, next) ?? []),
  }));
  const added = next.rules
    .filter((rule) => !hasRule(served, rule))
    .map((rule) => ({ ...rule, limits: listLimits(rule) }));
  return former
    .filter((rule) => !hasRule(next, rule))
    .flatMap((rule) => {
      /** True if another rule let it through before with no more limits than these. */
      const wasFree = (pattern: string, allowed: readonly string[]) =>
        former.some(
          (other) =>
            other !== rule &&
            other.limits.every((limit) => allowed.includes(limit)) &&
            other.now.some((one) => covers(one, pattern)),
        );
      const lost = added
        .filter(({ ask }) => ask === undefined || rule.ask !== undefined)
        .filter(({ limits }) => limits.every((limit) => rule.limits.includes(limit)))
        .filter(({ may, limits }) =>
          may.some((one) =>
            rule.now
              .flatMap((pattern) => findCommon(one, pattern) ?? [])
              .some((pattern) => !wasFree(pattern, limits)),
          ),
        )
        .flatMap(({ limits }) => rule.limits.filter((limit) => !limits.includes(limit)));
      return [...new Set(lost)].map(
        (limit) =>
          `The limit ${limit} of a rule (before: ${rule.place}) is gone, so it would allow more.`,
      );
    });
}

/** The pattern for all that both fit, where that is all that one of them fits. */
function findCommon(one: string, other: string) {
  if (covers(one, other)) return other;
  return covers(other, one) ? one : undefined;
}

const hasRule = ({ rules }: Protections, rule: RuleConfig) =>
  rules.some((other) => isDeepStrictEqual(listMeant(other), listMeant(rule)));

/** All but its place. What a worker is told lacks members that are undefined. */
const listMeant = ({ who, when, may, ask }: RuleConfig) => [who, when, may, ask];

const listLimits = ({ who, when }: RuleConfig): readonly string[] => [
  ...(who === 'everyone' ? [] : Object.keys(who).map((member) => `"who.${member}"`)),
  ...(when === undefined ? [] : ['"when"']),
];

/** That all are gone is told otherwise. */
function findLostGuards(served: Compared, next: Compared): readonly string[] {
  if (next.guards.length === 0) return [];
  return served.guards.flatMap((guard) => {
    // One that keeps its name stands for itself, and not for another of its kind.
    const kept = next.guards.filter(
      ({ name, what }) =>
        name === guard.name ||
        (what === guard.what && served.guards.every((other) => other.name !== name)),
    );
    if (kept.length === 0) return [`The guard ${guard.name} is gone.`];
    const looksAsMuch = ({ name, servers, tools, onError }: Omit<GuardConfig, 'use'>) =>
      (onError === 'refuse' || guard.onError === 'pass') &&
      (servers === undefined ||
        guard.servers?.every((one) => servers.includes(one) || !Object.hasOwn(next.starts, one)) ===
          true) &&
      (tools === undefined ||
        (guard.tools ?? ['*']).every((pattern) => {
          const now = translate(guard.name, pattern, served, next);
          return now === undefined || coversNow(name, tools, now, next);
        }));
    const lost = guard.on.filter(
      (point) => !kept.some((other) => other.on.includes(point) && looksAsMuch(other)),
    );
    return lost.length === 0
      ? []
      : [`The guard ${guard.name} would check less than before (${lost.join(', ')}).`];
  });
}

/** The pattern as names are in the next file. Undefined for one that protects nothing: it fits nothing, or its server is gone. */
function translate(subject: string, pattern: string, served: Compared, next: Compared) {
  if (served.isIdle(subject, pattern)) return undefined;
  const owner = Object.entries(served.starts).find(
    ([, begin]) => begin !== '' && pattern.startsWith(begin),
  );
  if (owner === undefined) return pattern;
  const [server, former] = owner;
  const start = next.starts[server];
  return start === undefined ? undefined : start + pattern.slice(former.length);
}

const coversNow = (
  subject: string,
  patterns: readonly string[],
  now: string,
  { isIdle }: Compared,
) => patterns.some((one) => covers(one, now) && !isIdle(subject, one));

/** True if all that the other fits is fitted by this one; where that is hard to tell, it is not. */
function covers(pattern: string, other: string) {
  const [one, covered] = [parsePattern(pattern), parsePattern(other)];
  if (one.kind !== covered.kind) return false;
  if (one.glob === covered.glob) return true;
  // A star takes wildcards of the other as it takes what they stand for; a question mark does not.
  return (!one.glob.includes('?') || isName(covered.glob)) && compileGlob(one.glob)(covered.glob);
}

/** True if something may fit both. */
function mayMeet(pattern: string, other: string) {
  const [one, met] = [parsePattern(pattern), parsePattern(other)];
  if (one.kind !== met.kind) return false;
  if (isName(met.glob)) return compileGlob(one.glob)(met.glob);
  if (isName(one.glob)) return compileGlob(met.glob)(one.glob);
  const [head, otherHead] = [readGlobHead(one.glob), readGlobHead(met.glob)];
  return head.startsWith(otherHead) || otherHead.startsWith(head);
}

const isName = (glob: string) => readGlobHead(glob) === glob;

/** Characters of a pattern. */
const MAX_SHOWN = 100;
