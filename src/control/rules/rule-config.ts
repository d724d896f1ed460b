// §18.5: `rules` of the configuration file, and their validation.

import { choice, freeText, nonBlank, text, trueOrFalse } from '../../config/file/shapes/scalar.ts';
import {
  defineMember,
  type FilePlace,
  type FileReading,
  list,
  object,
  record,
  report,
  type Shape,
} from '../../config/file/shapes/shape.ts';
import type { FileNode } from '../../config/file/syntax/read-syntax.ts';
import type { Problem } from '../../config/problem.ts';
import { isScopeToken } from '../../config/rules.ts';
import { decodeResource, NEVER_FITS } from '../../mcp/catalog/resource-text.ts';
import { MAX_GLOB_LENGTH } from '../../platform/glob.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import { suggestName } from '../../platform/nearest-name.ts';
import { quote } from '../../platform/text.ts';
import { loadConditions, parsePattern } from './compile-rules.ts';
import type { RuleConfig, RuleSubject } from './rules.ts';

const names = (what: string) =>
  list(
    text(
      { parse: (given) => given || undefined, allowed: 'a text that is not empty' },
      { minLength: 1 },
    ),
    { allowed: `a list of ${what}`, isNotEmpty: true },
  );

const CLAIM_VALUES =
  'text, a number, true or false, a list of those that are allowed, or an object of such values';

/** Values of claims are compared with their type. */
const claimScalar: Shape<string | number | boolean> = {
  schema: { type: ['string', 'number', 'boolean'] },
  read(node, place) {
    if (node.kind !== 'scalar' || node.value === null)
      return report(place, node.line, `This is not valid. It must be ${CLAIM_VALUES}.`);
    if (typeof node.value !== 'number')
      return (typeof node.value === 'boolean' ? trueOrFalse : freeText()).read(node, place);
    // Beyond safe integers, different numbers would be equal.
    return Math.abs(node.value) <= Number.MAX_SAFE_INTEGER
      ? node.value
      : report(place, node.line, INEXACT);
  },
};

const INEXACT =
  'This number is too large: tokens with other numbers would fit, too. Have the provider send it as text, and write it in double quotes.';

const claimList = list(claimScalar, { allowed: CLAIM_VALUES, isNotEmpty: true });

/** Claims may have members, such as `realm_access` with `roles`. */
const claim: Shape<unknown> = {
  schema: { anyOf: [claimScalar.schema, claimList.schema, { type: 'object' }] },
  read(node, place) {
    if (node.kind === 'object') return claimsShape.read(node, place);
    return (node.kind === 'list' ? claimList : claimScalar).read(node, place);
  },
};

const claimsShape: Shape<JsonObject> = record(claim, {
  allowed: 'an object of claims, such as { "department": ["it", "hr"] }',
});

const subjectMembers = {
  groups: defineMember('groups', names('groups'), 'Groups of the user. One of them is enough.'),
  scopes: defineMember('scopes', names('scopes'), 'Scopes of the token. One of them is enough.'),
  claims: defineMember(
    'claims',
    claimsShape,
    'Claims of the token, each with its value, or with a list of allowed values.',
  ),
  clients: defineMember(
    'clients',
    names('client IDs'),
    'OAuth client IDs, in which * is any text. One of them is enough.',
  ),
  views: defineMember(
    'views',
    names('names of views'),
    'Views that the call may come through. One of them is enough.',
  ),
};

const subject: Shape<RuleSubject> = object({
  allowed: 'an object with groups, scopes, claims, clients or views',
  members: Object.values(subjectMembers),
  schema: { minProperties: 1 },
  build({ isEmpty, read, report: reportHere }) {
    if (isEmpty) return reportHere('It is empty. For all users write "everyone".');
    const groups = read(subjectMembers.groups);
    const scopes = read(subjectMembers.scopes);
    const claimsGiven = read(subjectMembers.claims);
    const clients = read(subjectMembers.clients);
    const views = read(subjectMembers.views);
    return {
      ...(groups && { groups }),
      ...(scopes && { scopes }),
      ...(claimsGiven && { claims: claimsGiven }),
      ...(clients && { clients }),
      ...(views && { views }),
    };
  },
});

const EVERYONE = 'everyone';

const whoShape: Shape<RuleConfig['who']> = {
  schema: { anyOf: [{ const: EVERYONE }, subject.schema] },
  read(node: FileNode, place: FilePlace) {
    if (node.kind === 'object') return subject.read(node, place);
    if (node.kind === 'scalar' && node.value === EVERYONE) return EVERYONE;
    return report(
      place,
      node.line,
      'This is not valid. It must be "everyone", or an object with groups, scopes, claims, clients or views.',
    );
  },
};

const ruleMembers = {
  who: defineMember(
    'who',
    whoShape,
    'The users and clients to which the rule applies. All conditions must hold.',
  ),
  when: defineMember(
    'when',
    nonBlank('a CEL expression'),
    'A CEL expression over user, client, tool and args that must hold, too.',
  ),
  may: defineMember(
    'may',
    names('patterns, such as "github__*", "prompt:*" or "resource:config://server"'),
    'The names that they may use, as clients see them, in which * is any text.',
  ),
  ask: defineMember(
    'ask',
    choice('user', 'page', 'operator'),
    'Each call of such a tool needs approval before it runs: by the user in their client, by the user on the page /approvals, or by an operator.',
  ),
};

/** Without its position in the file. */
const ruleShape: Shape<Omit<RuleConfig, 'place'>> = object({
  allowed: 'an object with who or when, may, and perhaps ask',
  members: Object.values(ruleMembers),
  schema: { required: ['may'], anyOf: [{ required: ['who'] }, { required: ['when'] }] },
  build({ has, read, report: reportHere }) {
    const subjectGiven = read(ruleMembers.who);
    const when = read(ruleMembers.when);
    const may = read(ruleMembers.may);
    const ask = read(ruleMembers.ask);
    if (!has(ruleMembers.may))
      reportHere('"may" is missing: a list of the names that they may use, such as ["github__*"].');
    // Fails closed: a forgotten line must not allow everything.
    if (!has(ruleMembers.who) && !has(ruleMembers.when))
      return reportHere('"who" is missing. For all users write "who": "everyone".');
    const isRead = (!has(ruleMembers.who) || subjectGiven) && (!has(ruleMembers.when) || when);
    if (!isRead || !may || (has(ruleMembers.ask) && !ask)) return undefined;
    return { who: subjectGiven ?? EVERYONE, when, may, ...(ask && { ask }) };
  },
});

/** A rule and its position in the file, for problems. */
export interface PlacedRule {
  readonly rule: Omit<RuleConfig, 'place'>;
  readonly place: FilePlace;
  readonly line: number;
}

interface PlacedRules {
  readonly rules: readonly PlacedRule[];
  readonly meansNoRules: boolean;
}

/** Skips a rule with a reported member, which would cause further problems. */
const placedRule: Shape<PlacedRule> = {
  schema: ruleShape.schema,
  read(node, place) {
    let isReported = false;
    const context: FileReading = {
      ...place.context,
      report(...problem) {
        isReported = true;
        place.context.report(...problem);
      },
    };
    const rule = ruleShape.read(node, { ...place, context });
    return rule && !isReported ? { rule, place, line: node.line } : undefined;
  },
};

// Removing the last rule must not allow everything to all callers.
const ruleList = list(placedRule, {
  allowed:
    'a list of at least one rule. To let all users use everything, write "everyone" instead; to let none, write a rule with a group that has no members',
  isNotEmpty: true,
});

export const rulesShape: Shape<PlacedRules> = {
  schema: { anyOf: [{ const: EVERYONE }, ruleList.schema] },
  read(node, place) {
    if (node.kind === 'scalar' && node.value === EVERYONE) return { rules: [], meansNoRules: true };
    const rules = ruleList.read(node, place);
    return rules && { rules, meansNoRules: false };
  },
};

// Problems of rules beyond their shape.

/** The rules of a file with their positions. Reports the problems of each. */
export async function completeRules(
  placedRules: readonly PlacedRule[],
  fileName: string,
): Promise<readonly RuleConfig[]> {
  const rules = placedRules.map(({ rule, place, line }) => ({
    ...rule,
    place: `${fileName}:${line}, ${place.path}`,
  }));
  for (const { place, message } of await checkRules(rules)) {
    const placed = placedRules[rules.findIndex((rule) => rule.place === place)];
    if (placed !== undefined) report(placed.place, placed.line, message);
  }
  return rules;
}

/** A problem for each unknown view in `who`: such a rule does not apply to any caller. */
export const describeMissingViews = (
  rules: readonly RuleConfig[],
  views: readonly string[],
): readonly string[] =>
  rules.flatMap(({ who, place }) =>
    (typeof who === 'object' ? (who.views ?? []) : [])
      .filter((name) => !views.includes(name))
      .map(
        (name) =>
          `${place}: "views" names ${quote(name)}, which is not a view in this file.${suggestName(name, views, quote)}`,
      ),
  );

/** All problems that the shapes above do not find, with the rules' positions. */
export async function checkRules(rules: readonly RuleConfig[]): Promise<readonly Problem[]> {
  const compileCondition = await loadConditions(rules);

  return rules.flatMap(({ may, who, when, ask, place }) => {
    // Prompts and resources are only read: approvals are for calls with effects.
    const notAsked =
      ask === undefined ? [] : may.filter((pattern) => parsePattern(pattern).kind !== 'tool');
    const condition = when === undefined ? undefined : compileCondition?.(when);
    const problems = condition && 'problems' in condition ? condition.problems : [];
    return [
      ...may.flatMap((pattern) => checkPattern(pattern) ?? []),
      ...notAsked.map(
        (pattern) =>
          `may: ${quote(pattern)} cannot have "ask", which is for tools. Write a separate rule for it, without "ask".`,
      ),
      ...checkWho(who),
      ...problems.map((problem) => `when: ${problem}`),
    ].map((message) => ({ place, message }));
  });
}

/** Words that look like a kind; patterns without a kind apply to tools. */
const NO_KIND = /^(tools?|prompts|resources|resource[_-]?templates?|templates?|Prompt|Resource):/;

function checkPattern(pattern: string): string | undefined {
  const shown = `may: ${quote(pattern)}`;
  const { kind, glob } = parsePattern(pattern);
  if (glob === '') return `${shown} names nothing. Use * for any name.`;
  if (NO_KIND.test(pattern))
    return `${shown} begins with an unknown kind. Use prompt: or resource: (also for templates); tools have none.`;
  if (pattern.length > MAX_GLOB_LENGTH)
    return `${shown} is too long. A pattern has at most ${MAX_GLOB_LENGTH} characters.`;
  if (/[\p{Cc}\p{Cs}]/u.test(glob)) return `${shown} has a control character, as no name has.`;
  if (kind === 'resource' && decodeResource(glob) !== glob) return `${shown} ${NEVER_FITS}`;
  return undefined;
}

function checkWho(who: RuleConfig['who']): readonly string[] {
  if (who === 'everyone') return [];
  return [
    ...(who.scopes ?? []).flatMap((scope) =>
      isScopeToken(scope) ? [] : [`who.scopes: ${quote(scope)} is not one scope.`],
    ),
    ...(who.clients ?? []).flatMap((glob) =>
      glob.length > MAX_GLOB_LENGTH
        ? [`who.clients: ${quote(glob)} must have 1 to ${MAX_GLOB_LENGTH} characters.`]
        : [],
    ),
    ...(who.claims === undefined ? [] : checkClaims(who.claims, 'who.claims')),
  ];
}

function checkClaims(claims: JsonObject, place: string): readonly string[] {
  const members = Object.entries(claims);
  if (members.length === 0) return [`${place} is empty and matches no user. Name a claim.`];
  return members.flatMap(([name, value]) =>
    isObject(value) ? checkClaims(value, `${place}[${quote(name)}]`) : [],
  );
}
