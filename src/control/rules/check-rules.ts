// §18.5: what is wrong with rules, told at start.
import { report } from '../../config/file/shapes/shape.ts';
import type { Problem } from '../../config/problem.ts';
import { isScopeToken } from '../../config/scope.ts';
import { MAX_GLOB_LENGTH } from '../../platform/glob.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import { findNearestName } from '../../platform/nearest-name.ts';
import { quote } from '../../platform/text.ts';
import { loadConditions } from './compile-rules.ts';
import type { PlacedRule, RuleConfig, RuleSubject } from './rule-config.ts';
import { decodeResource, isScalar, parsePattern } from './rules.ts';

/** The rules of a file, each with its place for messages. Reports at each what is wrong with it. */
export async function completeRules(
  placedRules: readonly PlacedRule[],
  fileName: string,
): Promise<readonly RuleConfig[]> {
  const rules = placedRules.map(({ rule, place, line }) => ({
    ...rule,
    place: `${fileName}:${line}, ${place.path}`,
  }));
  const problems = await checkRules(rules);
  placedRules.forEach(({ place, line }, index) => {
    const own = problems.filter((problem) => problem.place === rules[index]?.place);
    for (const { message } of own) report(place, line, message);
  });
  return rules;
}

/** A sentence for each view that `who` names and the file does not have: such a rule is about nobody. */
export const describeMissingViews = (
  rules: readonly RuleConfig[],
  views: readonly string[],
): readonly string[] =>
  rules.flatMap(({ who, place }) =>
    (typeof who === 'object' ? (who.views ?? []) : [])
      .filter((name) => !views.includes(name))
      .map((name) => {
        const nearest = findNearestName(name, views);
        const guess = nearest === undefined ? '' : ` Did you mean ${quote(nearest)}?`;
        return `${place}: "views" names ${quote(name)}, which is no view of this file.${guess}`;
      }),
  );

/** All that is wrong, at the rules' places. Types are those of `RuleConfig`: who parses the file has seen to that. */
export async function checkRules(rules: readonly RuleConfig[]): Promise<readonly Problem[]> {
  const compileCondition = await loadConditions(rules);

  function checkWhen(when: string | undefined): readonly string[] {
    const condition = when === undefined ? undefined : compileCondition?.(when);
    if (condition === undefined || !('problems' in condition)) return [];
    return condition.problems.map((problem) => `when: ${problem}`);
  }

  return rules.flatMap(({ may, who, when, ask, place }) =>
    [
      ...checkMay(may),
      ...(ask === undefined ? [] : checkAsked(may)),
      ...checkWho(who),
      ...checkWhen(when),
    ].map((message) => ({ place, message })),
  );
}

/** Prompts and resources are read: what happens by a call is what somebody can agree to. */
function checkAsked(may: readonly string[]): readonly string[] {
  return may.flatMap((pattern) =>
    parsePattern(pattern).kind === 'tool'
      ? []
      : [
          `may: ${quote(pattern)} cannot be asked about: "ask" is for tools. Write a rule of its own for it, without "ask".`,
        ],
  );
}

function checkMay(may: readonly string[]): readonly string[] {
  if (may.length === 0) return ['may is empty: name what the rule allows, or remove the rule.'];
  return may.flatMap((pattern) => checkPattern(pattern) ?? []);
}

/** Words that somebody could take for a kind; a pattern without a kind is about tools. */
const NO_KIND = /^(tools?|prompts|resources|resource[_-]?templates?|templates?|Prompt|Resource):/;

function checkPattern(pattern: string): string | undefined {
  const shown = `may: ${quote(pattern)}`;
  const { kind, glob } = parsePattern(pattern);
  if (glob === '') return `${shown} names nothing. Use * for any name.`;
  if (NO_KIND.test(pattern)) {
    return `${shown} begins with no kind that there is. Use prompt: or resource: (also for templates); tools have none.`;
  }
  if (pattern.length > MAX_GLOB_LENGTH) {
    return `${shown} is too long. A pattern has at most ${MAX_GLOB_LENGTH} characters.`;
  }
  if (/[\p{Cc}\p{Cs}]/u.test(glob)) return `${shown} has a control character, as no name has.`;
  if (kind === 'resource' && decodeResource(glob) !== glob) {
    return `${shown} can never fit: URIs are compared decoded, and those with . or .. as a part of the path are refused. Write characters as they are, not as %20, and without such parts.`;
  }
  return undefined;
}

function checkWho(who: RuleConfig['who']): readonly string[] {
  if (who === 'everyone') return [];
  if (Object.values(who).every((value) => value === undefined)) {
    return ['who names nobody. Use "everyone", or groups, scopes, claims, clients or views.'];
  }
  const lists = LISTS.filter((name) => who[name]?.length === 0);
  return [
    ...lists.map((name) => `who.${name} is empty: nobody fits. Name one, or remove it.`),
    ...(who.scopes ?? []).flatMap((scope) =>
      isScopeToken(scope) ? [] : [`who.scopes: ${quote(scope)} is not one scope.`],
    ),
    ...(who.clients ?? []).flatMap((glob) =>
      glob === '' || glob.length > MAX_GLOB_LENGTH
        ? [`who.clients: ${quote(glob)} must have 1 to ${MAX_GLOB_LENGTH} characters.`]
        : [],
    ),
    ...(who.claims === undefined ? [] : checkClaims(who.claims, 'who.claims')),
  ];
}

const LISTS = [
  'groups',
  'scopes',
  'clients',
  'views',
] as const satisfies readonly (keyof RuleSubject)[];

function checkClaims(claims: JsonObject, place: string): readonly string[] {
  const members = Object.entries(claims);
  if (members.length === 0) return [`${place} is empty: nobody fits. Name a claim.`];
  return members.flatMap(([name, value]) => {
    const at = `${place}[${quote(name)}]`;
    if (isObject(value)) return checkClaims(value, at);
    const values: readonly unknown[] = Array.isArray(value) ? value : [value];
    if (values.length === 0) return [`${at} is empty: nobody fits. Name a value.`];
    return values.every(isScalar)
      ? []
      : [`${at} must be a text, a number, true, false, or a list of such.`];
  });
}
