// §18.5: whom a rule is about.

import { parseScope } from '../../config/scope.ts';
import type { UserContext } from '../../endpoint/message.ts';
import { compileGlob } from '../../platform/glob.ts';
import { isObject, isStringArray, type JsonObject } from '../../platform/json.ts';
import type { RuleConfig } from './rule-config.ts';
import type { RuleCaller } from './rules.ts';

export interface Subject {
  /** All but the scopes: those a client can ask for. */
  fits(caller: RuleCaller): boolean;
  /** The same, but that a client that is not known may be any. */
  mayFit(caller: RuleCaller): boolean;
  /** One of them is enough; undefined where none is needed. */
  readonly scopes: readonly string[] | undefined;
}

export function compileWho(who: RuleConfig['who']): Subject {
  if (who === 'everyone') return { fits: () => true, mayFit: () => true, scopes: undefined };
  const { groups, scopes, claims, clients, views } = who;
  const tests: ((caller: RuleCaller) => boolean)[] = [];
  if (groups !== undefined) {
    tests.push(({ user }) => user?.groups?.some((group) => groups.includes(group)) === true);
  }
  if (claims !== undefined) {
    const namesEmail = Object.hasOwn(claims, 'email');
    tests.push(
      ({ user }) =>
        user !== undefined &&
        // An address that may be somebody else's is none.
        !(namesEmail && user.emailVerified === false) &&
        hasClaims(user.claims, claims),
    );
  }
  // Nobody who is not logged in can ask for a scope.
  if (scopes !== undefined) tests.push(({ user }) => user !== undefined);
  if (views !== undefined) tests.push(({ view }) => view !== undefined && views.includes(view));
  const globs = clients?.map(compileGlob);
  // Nobody is meant by nothing.
  const isEmpty = tests.length === 0 && globs === undefined;
  const fitsRest = (caller: RuleCaller) => !isEmpty && tests.every((test) => test(caller));

  function fitsClient({ clientId }: RuleCaller, ifUnknown: boolean): boolean {
    if (globs === undefined) return true;
    return clientId === undefined ? ifUnknown : globs.some((matches) => matches(clientId));
  }

  return {
    fits: (caller) => fitsRest(caller) && fitsClient(caller, false),
    mayFit: (caller) => fitsRest(caller) && fitsClient(caller, true),
    scopes,
  };
}

/** What the token may be used for: `scope`, or `scp` of some providers, as text or as a list. */
export function readScopes(user: UserContext | undefined): readonly string[] {
  const { scope, scp } = user?.claims ?? {};
  return [scope, scp].flatMap((claim) => {
    if (typeof claim === 'string') return parseScope(claim);
    return isStringArray(claim) ? claim : [];
  });
}

/** Each member that the rule names is there, and its own: nothing is inherited, and no name is a path. */
function hasClaims(claims: JsonObject, wanted: JsonObject): boolean {
  const names = Object.keys(wanted);
  return (
    names.length > 0 &&
    names.every((name) => Object.hasOwn(claims, name) && hasValue(claims[name], wanted[name]))
  );
}

/** A claim that is a list has each of its values. */
function hasValue(claim: unknown, wanted: unknown): boolean {
  if (isObject(wanted)) return isObject(claim) && hasClaims(claim, wanted);
  const allowed: readonly unknown[] = Array.isArray(wanted) ? wanted : [wanted];
  const values: readonly unknown[] = Array.isArray(claim) ? claim : [claim];
  return values.some((value) => isScalar(value) && allowed.includes(value));
}

const isScalar = (value: unknown): boolean =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
