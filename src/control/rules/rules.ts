// §18.5: who may use what.

import { parseScope } from '../../config/scope.ts';
import type { UserContext } from '../../http/endpoint/message.ts';
import type { AskWhom, PolicyCaller, PolicyItem } from '../../mcp/calls/policy.ts';
import type { ItemKind } from '../../mcp/protocol/list-kinds.ts';
import { createBoundedMap } from '../../platform/bounded-map.ts';
import type { Turns } from '../../platform/clock.ts';
import { canBegin, compileGlob, MAX_TEXT_LENGTH, type MatchGlob } from '../../platform/glob.ts';
import { hashSha256 } from '../../platform/ids.ts';
import { isObject, isStringArray, type JsonObject } from '../../platform/json.ts';
import type { RuleConfig } from './rule-config.ts';
import type { NamedFacts } from './when/inspect-expression.ts';

/** One predicate decides list, call, get, read, completion, templates and subscriptions. */
export interface Rules {
  /** Facts of users that the rules name. */
  readonly namedFacts: NamedFacts;
  /** Before many items are decided on: works out what follows from the caller alone, and gives way to others. */
  prepareFor(caller: RuleCaller, work: Turns): Promise<void>;
  /** At once, and without effect. */
  decide(item: RuledItem, caller: RuleCaller): RuleDecision;
  /** See `Policy`. */
  mayAllowSome(namesBegin: string, caller: RuleCaller): boolean;
}

export interface CompiledRules extends Rules {
  /** The same rules, which know nothing of callers of these. */
  withOwnMemory(): Rules;
}

/** An item to be seen, or used with these arguments. */
export interface RuledItem extends PolicyItem {
  /**
   * The arguments of a call: `{}` where it has none. Undefined in lists, where a rule that looks at them counts as fulfilled.
   * Resources have none: such a rule allows none.
   */
  readonly args: JsonObject | undefined;
}

export type RuleCaller = PolicyCaller;

export type RuleDecision =
  | {
      readonly kind: 'allowed';
      /** `place` of the rule that says so; absent without rules. */
      readonly rule?: string;
      /** In a list: arguments of the call decide whether it is. */
      readonly isByArgs?: boolean;
      /** The one who has to agree to a call before it runs (§27). */
      readonly ask?: AskWhom;
      /** `place` of the rule that asks. */
      readonly askRule?: string;
      /** In a list: arguments of the call decide whether it is asked about. */
      readonly isAskedByArgs?: boolean;
    }
  /**
   * For this caller it does not exist. `rounded` is a number of the arguments at which a rule would have to look, and which no
   * double holds.
   */
  | { readonly kind: 'denied'; readonly rounded?: string }
  /** Only these scopes are missing: it is listed, and its call is 403 `insufficient_scope`. */
  | { readonly kind: 'scopes_missing'; readonly scopes: readonly string[]; readonly rule?: string };

// `who`: the callers that a rule is about.

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

/** Reads what the token may be used for: `scope`, or `scp` of some providers, as text or as a list. */
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

export const isScalar = (value: unknown): boolean =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';

// `may`: the patterns of a rule, and the one form of a resource's URI or template that they are compared with.

interface Pattern {
  readonly kind: ItemKind;
  readonly glob: string;
}

/** `prompt:…` and `resource:…` are about those, all else about tools. */
export function parsePattern(pattern: string): Pattern {
  const [, kind, glob] = /^(prompt|resource):(.*)$/s.exec(pattern) ?? [];
  if (glob === undefined) return { kind: 'tool', glob: pattern };
  return { kind: kind === 'prompt' ? 'prompt' : 'resource', glob };
}

interface CompiledMay {
  /** True if one of the patterns fits an item of that kind, by the text that it is compared by. */
  fits(kind: ItemKind, text: string): boolean;
  /** True if one of them fits some tool or prompt whose name begins so. */
  fitsSome(namesBegin: string): boolean;
  /** True if one of them is about resources. */
  readonly hasResources: boolean;
}

export function compileMay(patterns: readonly string[]): CompiledMay {
  const parsed = patterns.map(parsePattern);
  const globsOf = (wanted: ItemKind): readonly MatchGlob[] =>
    parsed.filter(({ kind }) => kind === wanted).map(({ glob }) => compileGlob(glob));
  const globs: Readonly<Record<ItemKind, readonly MatchGlob[]>> = {
    tool: globsOf('tool'),
    prompt: globsOf('prompt'),
    resource: globsOf('resource'),
  };

  const ofNames = parsed.filter(({ kind }) => kind !== 'resource');
  return {
    fits: (kind, text) => globs[kind].some((matches) => matches(text)),
    hasResources: ofNames.length < parsed.length,
    fitsSome: (namesBegin) => ofNames.some(({ glob }) => canBegin(glob, namesBegin)),
  };
}

/**
 * The URI with each `%41` as its character, once. Undefined, so that no pattern fits, for what a server
 * could read as something else than what the pattern was compared with: an encoding that is broken, or encoded
 * again; `.` and `..` as parts of a path, in any spelling; control characters; what ends a host, encoded in it.
 * Otherwise nothing is changed: case and Unicode form count.
 */
export function decodeResource(uri: string): string | undefined {
  const decoded = decodeOnce(uri);
  return decoded !== undefined && isUnambiguous(decoded) ? decoded : undefined;
}

/** `decodeResource` that remembers what it found of texts that take long: a server may list thousands of them. */
export function createDecodeResource(): (uri: string) => string | undefined {
  /** Keyed by the SHA-256 of the decoded text. */
  const known = createBoundedMap<string, boolean>(MAX_REMEMBERED);

  function findOut(decoded: string): boolean {
    const key = hashSha256(decoded);
    const remembered = known.get(key);
    if (remembered !== undefined) return remembered;
    const found = isUnambiguous(decoded);
    known.set(key, found);
    return found;
  }

  return function decodeAndRemember(uri) {
    const decoded = decodeOnce(uri);
    if (decoded === undefined) return undefined;
    const isKnown = ONLY_ASCII.test(decoded) ? isUnambiguous(decoded) : findOut(decoded);
    return isKnown ? decoded : undefined;
  };
}

/** Undefined where it cannot be read, or is longer than what a pattern fits. */
function decodeOnce(uri: string): string | undefined {
  if (uri.length > MAX_ENCODED_LENGTH) return undefined;
  // The host of `https://good.example%2F@other.example/` is other.example.
  if (ENCODED_DELIMITER.test(AUTHORITY.exec(uri)?.[1] ?? '')) return undefined;
  const decoded = decode(uri);
  if (decoded === undefined || decoded.length > MAX_TEXT_LENGTH) return undefined;
  return UNREADABLE.test(decoded) ? undefined : decoded;
}

/** One character may become eighteen here: so it is bounded before. */
function isUnambiguous(decoded: string): boolean {
  // Servers that fold compatible characters read the full-width `．．／` as `../../features/`.
  const folded = ONLY_ASCII.test(decoded) ? decoded : decoded.normalize('NFKC');
  return !ENCODED.test(folded) && !folded.split(SEPARATORS).some(isDotSegment);
}

/** Each character may be written as `%41`, in up to four bytes. */
const MAX_ENCODED_LENGTH = 6 * MAX_TEXT_LENGTH;
/** Some 100 bytes each. */
const MAX_REMEMBERED = 10_000;

/** Matches what stands between `://` and the path, with user name and port. */
const AUTHORITY = /^[^:/?#]*:[/\\]{2}([^/\\?#]*)/;
/** `/`, `\\`, `?`, `#`, `@` and `:`. */
const ENCODED_DELIMITER = /%(2f|5c|3f|23|40|3a)/i;
const ENCODED = /%[0-9a-f]{2}/i;
/** Control characters, which some parsers leave out, and halves of characters. */
const UNREADABLE = /[\p{Cc}\p{Cs}]/u;
const ONLY_ASCII = /^[\x20-\x7E]*$/;
const SEPARATORS = /[/\\?#&=;:]/;

function decode(uri: string): string | undefined {
  try {
    return decodeURIComponent(uri);
  } catch {
    return undefined;
  }
}

const isDotSegment = (segment: string): boolean => /^\s*\.{1,2}\s*$/.test(segment);
