// §13.2: who somebody is, as the provider says it: what an answer of the provider has to agree with, and what is kept of the claims
// of a user: how much at most, and which of those that a renewal cannot give.
import { catalogue } from '../../errors/catalogue.ts';
import { fail } from '../../errors/gateway-error.ts';
import { hasLevels, isObject, type JsonObject } from '../../platform/json.ts';
import { quote } from '../../platform/text.ts';
import type { UserIdentity } from '../grants/grant.ts';

/** A text that says something; undefined for anything else. */
export const readText = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

/** A user, as the provider says. */
export interface Identity {
  readonly user: UserIdentity;
  /** All that it said, at most 16 KiB; `groups` is that of OIDC_GROUPS_CLAIM. */
  readonly claims: JsonObject;
  /** Those that the userinfo endpoint alone gave. */
  readonly userinfoClaims: readonly string[];
  /** OpenID Connect Back-Channel Logout §2.1. */
  readonly sid: string | undefined;
}

/** An answer has to agree with it. */
export interface ExpectedIdentity {
  /** OpenID Connect Core §3.1.3.7: of the login that the code is for. */
  readonly nonce: string | undefined;
  /** OpenID Connect Core §12.2: of whom it must be, whose claims stay where the answer cannot give them. */
  readonly earlier: EarlierIdentity | undefined;
  /** It came of no request: the access token is one that the provider gave long ago, and may have been revoked. */
  readonly isHeldToken?: boolean;
}

export interface EarlierIdentity extends Pick<Identity, 'user' | 'claims'> {
  /** Without it all claims are taken for those of the ID token. */
  readonly userinfoClaims?: readonly string[] | undefined;
}

/** The claims of each place; undefined where it was not asked, or could not be. */
export interface ClaimSources {
  readonly idToken: JsonObject | undefined;
  readonly userinfo: JsonObject | undefined;
}

/** The ID token is signed, and has the last word. */
export function joinClaims({ idToken = {}, userinfo = {} }: ClaimSources): JsonObject {
  // But of an address that userinfo alone has, it says nothing.
  if (idToken.email === undefined && typeof userinfo.email === 'string')
    return { ...userinfo, ...select(idToken, isNotAboutEmail) };
  const isOfOther = userinfo.email !== idToken.email;
  return { ...(isOfOther ? select(userinfo, isNotAboutEmail) : userinfo), ...idToken };
}

/** All that is said of an address was said of no other: that it is verified, and that an organization has it (Google). */
const ABOUT_EMAIL = new Set(['email_verified', 'xms_edov', 'hd']);

const isNotAboutEmail = (name: string) => !ABOUT_EMAIL.has(name);

const select = (claims: JsonObject, isMeant: (name: string) => boolean): JsonObject =>
  Object.fromEntries(Object.entries(claims).filter(([name]) => isMeant(name)));

/**
 * A claim keeps its value where the place that gave it says nothing now: the answer to a refresh may have no ID token, and
 * userinfo may not be there. Where that place did answer, what it leaves out is gone. What is said of an address goes with it.
 * `kept` are the names of those that keep the value that they had.
 */
export function mergeRenewedClaims(earlier: EarlierIdentity, sources: ClaimSources) {
  const renewed = joinClaims(sources);
  const fromUserinfo = new Set(earlier.userinfoClaims);
  const isKept = (name: string) => {
    const place = fromUserinfo.has(name) ? sources.userinfo : sources.idToken;
    return place === undefined && !Object.hasOwn(renewed, name);
  };
  const { email } = earlier.claims;
  const keepsEmail = email !== undefined && isKept('email');
  const isOfSameEmail = keepsEmail || renewed.email === email;
  const keptClaims = select(earlier.claims, (name) =>
    isNotAboutEmail(name)
      ? isKept(name)
      : isOfSameEmail && (isKept(name) || (keepsEmail && Object.hasOwn(renewed, name))),
  );
  const said = keepsEmail ? select(renewed, isNotAboutEmail) : renewed;
  return { claims: { ...keptClaims, ...said }, kept: Object.keys(keptClaims) };
}

const MAX_BYTES = 16_384;
const MAX_LEVELS = 32;
/** Claims that an error names. */
const MAX_NAMED = 3;

/** @throws GatewayError `unusable_identity` that names the size and the largest claims. */
export function checkClaimSize(claims: JsonObject): void {
  const deep = Object.keys(claims).find((name) => !hasLevels(claims[name], MAX_LEVELS));
  if (deep !== undefined)
    failIdentity(`The claim ${quote(deep)} has more than ${MAX_LEVELS} levels.`, { deep });
  const bytes = countBytes(claims);
  if (bytes <= MAX_BYTES) return;
  const largest = Object.entries(claims)
    .map(([name, value]) => ({ name, bytes: countBytes(value) }))
    .sort((a, b) => b.bytes - a.bytes)
    .slice(0, MAX_NAMED);
  const list = largest.map(({ name, bytes: size }) => `${quote(name, 100)} (${size} bytes)`);
  failIdentity(
    `The claims of the user have ${bytes} bytes; at most ${MAX_BYTES} are kept. The largest are ${list.join(', ')}: have the provider send less in them.`,
    { bytes, largest },
  );
}

const countBytes = (value: unknown) => Buffer.byteLength(JSON.stringify(value) ?? '');

/** `problem` is a sentence after that of the catalogue. @throws GatewayError `unusable_identity`, always. */
export const failIdentity = (problem: string, facts: JsonObject, cause?: unknown): never =>
  fail('unusable_identity', {
    details: `${catalogue.unusable_identity.details} ${problem}`,
    facts,
    cause,
  });

// A claim by its name, as settings write it.

/**
 * The member of exactly this name comes first, also one with dots, such as a URL. Else the name is a path: what stands before
 * its first dot, and the rest within that by the same rule. Undefined where there is none; nothing is inherited.
 */
export function findClaim(claims: JsonObject, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  const dot = name.indexOf('.');
  if (dot === -1) return undefined;
  const head = name.slice(0, dot);
  const inner = Object.hasOwn(claims, head) ? claims[head] : undefined;
  return isObject(inner) ? findClaim(inner, name.slice(dot + 1)) : undefined;
}
