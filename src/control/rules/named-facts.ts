// §28: the facts about users that rules name, in conditions or in `who`. The audit log writes these, and nothing else of a token.

import { parseScope } from '../../config/rules.ts';
import type { UserContext } from '../../http/endpoint/message.ts';
import { isObject, isStringArray, type JsonObject } from '../../platform/json.ts';
import type { Lookup, NamedFacts, RuleConfig, RuleSubject } from './rules.ts';

export function nameFacts(who: RuleConfig['who'], ofUser: Lookup | undefined): NamedFacts {
  const { groups, scopes, claims }: RuleSubject = who === 'everyone' ? {} : who;
  const ofWho = new Map<string, Lookup>();
  if (groups !== undefined) ofWho.set('groups', 'all');
  if (scopes !== undefined) ofWho.set('scopes', 'all');
  if (claims !== undefined) {
    ofWho.set('claims', toLookup(claims));
    // An unverified address may belong to another user.
    if (Object.hasOwn(claims, 'email')) ofWho.set('email_verified', 'all');
  }
  return joinFacts([ofWho, ofUser === undefined || ofUser === 'all' ? new Map() : ofUser]);
}

const toLookup = (claims: JsonObject): Map<string, Lookup> =>
  new Map(
    Object.entries(claims).map(([name, value]) => [
      name,
      isObject(value) ? toLookup(value) : 'all',
    ]),
  );

export const joinFacts = (named: readonly NamedFacts[]): NamedFacts =>
  named.reduce(join, new Map());

const join = (one: NamedFacts, other: NamedFacts): Map<string, Lookup> =>
  new Map(
    [...new Set([...one.keys(), ...other.keys()])].map((name) => [
      name,
      joinLookups(one.get(name), other.get(name)),
    ]),
  );

function joinLookups(one: Lookup | undefined, other: Lookup | undefined): Lookup {
  if (one === undefined || other === undefined) return one ?? other ?? 'all';
  return one === 'all' || other === 'all' ? 'all' : join(one, other);
}

/**
 * The named facts about a user, for the audit log: `null` for missing ones; omits those that are `null` themselves, and rules
 * about all claims. Undefined if none are named.
 */
export function describeNamed(user: UserContext, named: NamedFacts): JsonObject | undefined {
  const { email, emailVerified, name, groups, claims } = user;
  const facts: JsonObject = {
    ...(emailVerified !== false && { email }),
    email_verified: emailVerified,
    name,
    groups,
    scopes: readScopes(user),
    claims,
  };
  // Each line has `user` already.
  const written = [...named].filter(
    ([fact, lookup]) => fact !== 'sub' && !(fact === 'claims' && lookup === 'all'),
  );
  const described = pick(facts, new Map(written));
  return Object.keys(described).length === 0 ? undefined : described;
}

function pick(source: JsonObject, wanted: NamedFacts): JsonObject {
  const members: [string, unknown][] = [];
  for (const [name, inside] of wanted) {
    const value = readOwn(source, name);
    if (inside !== 'all' && isObject(value)) members.push([name, pick(value, inside)]);
    else if (!hasNull(value)) members.push([name, value === undefined ? null : value]);
  }
  return Object.fromEntries(members);
}

const readOwn = (source: JsonObject, name: string) =>
  Object.hasOwn(source, name) ? source[name] : undefined;

/** Keeps `null` in lists. */
const hasNull = (value: unknown) =>
  value === null || (isObject(value) && Object.values(value).some(hasNull));

/** Restores the facts written by `describeNamed`. */
export const dropMissing = (described: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(described)
      .filter(([, value]) => value !== null)
      .map(([name, value]) => [name, isObject(value) ? dropMissing(value) : value]),
  );

/** Lists named facts that `describeNamed` has not written, as conditions name them. */
export const listUnknown = (described: JsonObject, named: NamedFacts): readonly string[] =>
  [...named]
    .filter(([name]) => name !== 'sub')
    .flatMap(([name, inside]) =>
      name === 'claims' && inside === 'all'
        ? ['user.claims']
        : listUnknownIn(readOwn(described, name), inside, `user.${name}`),
    );

function listUnknownIn(value: unknown, wanted: Lookup, path: string): readonly string[] {
  if (wanted === 'all') return value === undefined ? [path] : [];
  if (value !== undefined && !isObject(value)) return [];
  return [...wanted].flatMap(([name, inside]) =>
    listUnknownIn(value && readOwn(value, name), inside, `${path}.${name}`),
  );
}

/** Reads the scopes of a token: `scope`, or `scp` of some providers, a string or a list. */
export function readScopes(user: UserContext | undefined): readonly string[] {
  const { scope, scp } = user?.claims ?? {};
  return [scope, scp].flatMap((claim) => {
    if (typeof claim === 'string') return parseScope(claim);
    return isStringArray(claim) ? claim : [];
  });
}
