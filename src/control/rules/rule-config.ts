// §18.5: `rules` of the configuration file.

import { choice, freeText, text, trueOrFalse } from '../../config/file/shapes/scalar.ts';
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
import { anyText } from '../../config/rules.ts';
import type { AskWhom } from '../../mcp/calls/policy.ts';
import type { JsonObject } from '../../platform/json.ts';

/** The part of the file about who may use what. */
export interface RulesConfig {
  /** Without any, everybody may use everything. */
  readonly rules: readonly RuleConfig[];
  /** `"rules": "everyone"`: that there are none is meant. */
  readonly meansNoRules: boolean;
  /** `"allowFewerProtections": true`: that the file protects less than the one before is meant. */
  readonly allowsFewer?: true;
}

/** Lets some callers use something. Rules only add up. */
export interface RuleConfig {
  /** The callers that it is about; all that is named must hold. */
  readonly who: 'everyone' | RuleSubject;
  /** A CEL expression that must hold, too. */
  readonly when: string | undefined;
  /** Globs over names as clients see them: of tools, or after `prompt:` or `resource:`. */
  readonly may: readonly string[];
  /** The one who has to agree to a call before it runs (§27); undefined where nobody has to. */
  readonly ask?: AskWhom | undefined;
  /** Its place, for messages: `postern.yaml:12, rules[0]`. */
  readonly place: string;
}

export interface RuleSubject {
  /** One of them is enough, as in each of these lists. */
  readonly groups?: readonly string[];
  readonly scopes?: readonly string[];
  /** A claim's exact value, or a list of those that it may have. */
  readonly claims?: Readonly<Record<string, unknown>>;
  /** Globs over OAuth client IDs. */
  readonly clients?: readonly string[];
  /** Names of views (§25). */
  readonly views?: readonly string[];
}

const names = (what: string) =>
  list(
    text(
      { parse: (given) => given || undefined, allowed: 'a text that is not empty' },
      { schema: { type: 'string', minLength: 1 } },
    ),
    { allowed: `a list of ${what}`, isNotEmpty: true },
  );

const CLAIM_VALUES =
  'text, a number, true or false, a list of those that are allowed, or an object of such values';

/** A claim's value is compared as it is: of its own type. */
const claimScalar: Shape<string | number | boolean> = {
  schema: { type: ['string', 'number', 'boolean'] },
  read(node, place) {
    if (node.kind === 'scalar' && typeof node.value === 'number')
      return isExact(node.value) ? node.value : report(place, node.line, INEXACT);
    if (node.kind === 'scalar' && typeof node.value === 'boolean')
      return trueOrFalse.read(node, place);
    return node.kind === 'scalar' && node.value !== null
      ? freeText().read(node, place)
      : report(place, node.line, `This is not valid. It must be ${CLAIM_VALUES}.`);
  },
};

/** Beyond, several numbers of a token are read as the same one. */
const isExact = (value: number): boolean => Math.abs(value) <= Number.MAX_SAFE_INTEGER;
const INEXACT =
  'This number is too large: tokens with other numbers would fit, too. Have the provider send it as text, and write it in double quotes.';

const claimList = list(claimScalar, { allowed: CLAIM_VALUES, isNotEmpty: true });

/** Claims may have members, such as `realm_access` with `roles`. */
const claim: Shape<unknown> = {
  schema: { anyOf: [claimScalar.schema, claimList.schema, { type: 'object' }] },
  read(node, place) {
    if (node.kind === 'object') return claims.read(node, place);
    return (node.kind === 'list' ? claimList : claimScalar).read(node, place);
  },
};

const claims: Shape<Readonly<Record<string, unknown>>> = record(claim, {
  allowed: 'an object of claims, such as { "department": ["it", "hr"] }',
});

const subjectMembers = {
  groups: defineMember('groups', names('groups'), 'Groups of the user. One of them is enough.'),
  scopes: defineMember('scopes', names('scopes'), 'Scopes of the token. One of them is enough.'),
  claims: defineMember(
    'claims',
    claims,
    'Claims of the token, with the value that each has, or a list of those that it may have.',
  ),
  clients: defineMember(
    'clients',
    names('client IDs'),
    'OAuth client IDs, in which * is any text. One of them is enough.',
  ),
  views: defineMember(
    'views',
    names('names of views'),
    'Views at whose path the call came. One of them is enough.',
  ),
};

const subject: Shape<RuleSubject> = object({
  allowed: 'an object with groups, scopes, claims, clients or views',
  members: Object.values(subjectMembers),
  schema: { minProperties: 1 },
  build({ isEmpty, read, report: reportHere }) {
    if (isEmpty) return reportHere('It is empty. For everybody write "everyone".');
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

const who: Shape<RuleConfig['who']> = {
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
  who: defineMember('who', who, 'Whom the rule is about. All that is named must hold.'),
  when: defineMember(
    'when',
    text(
      { parse: (given) => anyText.parse(given.trim()) || undefined, allowed: 'a CEL expression' },
      { schema: { type: 'string', pattern: '\\S' } },
    ),
    'A CEL expression over user, client, tool and args that must hold, too.',
  ),
  may: defineMember(
    'may',
    names('patterns, such as "github__*", "prompt:*" or "resource:config://server"'),
    'What they may use: names as clients see them, in which * is any text.',
  ),
  ask: defineMember(
    'ask',
    choice('user', 'page', 'operator'),
    'Who has to agree to each call of such a tool before it runs: the user in their client, the user at the page /approvals, or an operator.',
  ),
};

const RULE_SCHEMA: JsonObject = {
  required: ['may'],
  anyOf: [{ required: ['who'] }, { required: ['when'] }],
};

/** Without its place, which the file knows. */
const ruleShape: Shape<Omit<RuleConfig, 'place'>> = object({
  allowed: 'an object with who or when, may, and perhaps ask',
  members: Object.values(ruleMembers),
  schema: RULE_SCHEMA,
  build({ has, read, report: reportHere }) {
    const subjectGiven = read(ruleMembers.who);
    const when = read(ruleMembers.when);
    const may = read(ruleMembers.may);
    const ask = read(ruleMembers.ask);
    if (!has(ruleMembers.may))
      reportHere('"may" is missing: a list of what they may use, such as ["github__*"].');
    // Nobody should get everything because a line was forgotten.
    if (!has(ruleMembers.who) && !has(ruleMembers.when))
      return reportHere('"who" is missing. For everybody write "who": "everyone".');
    const isRead = (!has(ruleMembers.who) || subjectGiven) && (!has(ruleMembers.when) || when);
    if (!isRead || !may || (has(ruleMembers.ask) && !ask)) return undefined;
    return { who: subjectGiven ?? EVERYONE, when, may, ...(ask && { ask }) };
  },
});

/** A rule, and where the file has it, which is where its problems are reported. */
export interface PlacedRule {
  readonly rule: Omit<RuleConfig, 'place'>;
  readonly place: FilePlace;
  readonly line: number;
}

export interface PlacedRules {
  readonly rules: readonly PlacedRule[];
  readonly meansNoRules: boolean;
}

/** A rule of which a member was reported is left out: what was read of it would be reported again, as if it were meant so. */
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

// Whoever takes the last rule away should not give everything to everybody.
const ruleList = list(placedRule, {
  allowed:
    'a list of one rule or more. To let everybody use everything, write "everyone" in its place; to let nobody, write one with a group that nobody is in',
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
