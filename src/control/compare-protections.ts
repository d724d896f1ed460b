// §18.1: compares the protections of a new configuration file with those in use: reports approvals, limits in rules, and guards
// that are gone or no longer match anything. Compares patterns: an item that is no longer allowed needs no approval.

import { isDeepStrictEqual } from 'node:util';
import type { GuardConfig, GuardsConfig } from '../mcp/calls/guards.ts';
import { ASK_ORDER } from '../mcp/calls/policy.ts';
import { compileGlob, readGlobHead } from '../platform/glob.ts';
import { quote } from '../platform/text.ts';
import { bindGuard } from './guards/guard-config.ts';
import { parsePattern } from './rules/compile-rules.ts';
import type { RuleConfig, RulesConfig } from './rules/rules.ts';

/** The protections of one file, without secrets. */
export const describeProtections = (
  { rules, guards = [] }: RulesConfig & GuardsConfig,
  starts: Readonly<Record<string, string>>,
) => ({
  rules,
  /** `what` identifies the guard, independent of its name. */
  guards: guards.map(({ use, ...guard }) => ({ ...guard, what: bindGuard(use).describe() })),
  /** The name prefix of each server. */
  starts,
});

export type Protections = ReturnType<typeof describeProtections>;

/** True if the pattern of this rule or guard is known to match nothing. */
export type IsIdle = (subject: string, pattern: string) => boolean;

interface Compared extends Protections {
  readonly isIdle: IsIdle;
}

/** Problems, each with the position of the lost protection. */
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
      // Conditions cannot be compared.
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

/** Rules that replace a former one and allow more: without its `when`, or a member of its `who`. */
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
      /** True if another former rule already allowed it, under no stricter limits. */
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

/** The intersection of two patterns, if that is one of them. */
function findCommon(one: string, other: string) {
  if (covers(one, other)) return other;
  return covers(other, one) ? one : undefined;
}

const hasRule = ({ rules }: Protections, rule: RuleConfig) =>
  rules.some((other) => isDeepStrictEqual(listMeant(other), listMeant(rule)));

/** The rule without its position. Messages to a worker lack undefined members. */
const listMeant = ({ who, when, may, ask }: RuleConfig) => [who, when, may, ask];

const listLimits = ({ who, when }: RuleConfig): readonly string[] => [
  ...(who === 'everyone' ? [] : Object.keys(who).map((member) => `"who.${member}"`)),
  ...(when === undefined ? [] : ['"when"']),
];

/** The loss of all is reported separately. */
function findLostGuards(served: Compared, next: Compared): readonly string[] {
  if (next.guards.length === 0) return [];
  return served.guards.flatMap((guard) => {
    // A guard that keeps its name replaces itself, not another of its kind.
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

/**
 * The pattern with the names of the new file. Undefined if it protects nothing: it matches nothing, or its server was removed.
 */
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

/** True if this pattern covers the other; false if in doubt. */
function covers(pattern: string, other: string) {
  const [one, covered] = [parsePattern(pattern), parsePattern(other)];
  if (one.kind !== covered.kind) return false;
  if (one.glob === covered.glob) return true;
  // A star also covers wildcards of the other; a question mark does not.
  return (!one.glob.includes('?') || isName(covered.glob)) && compileGlob(one.glob)(covered.glob);
}

/** True if both may match the same name. */
function mayMeet(pattern: string, other: string) {
  const [one, met] = [parsePattern(pattern), parsePattern(other)];
  if (one.kind !== met.kind) return false;
  if (isName(met.glob)) return compileGlob(one.glob)(met.glob);
  if (isName(one.glob)) return compileGlob(met.glob)(one.glob);
  const [head, otherHead] = [readGlobHead(one.glob), readGlobHead(met.glob)];
  return head.startsWith(otherHead) || otherHead.startsWith(head);
}

const isName = (glob: string) => readGlobHead(glob) === glob;

/** Maximum length of a pattern, in characters. */
const MAX_SHOWN = 100;
