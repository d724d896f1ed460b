// §13.2: the identity of a user: expectations about the provider's answer, and the claims that are stored: their size, and those that a
// renewal keeps.
import { catalogue } from '../../errors/catalogue.ts';
import { fail } from '../../errors/gateway-error.ts';
import { hasLevels, isObject, type JsonObject } from '../../platform/json.ts';
import { quote } from '../../platform/text.ts';
import type { UserIdentity } from '../grants/grant.ts';

/** A non-empty text; undefined for anything else. */
export const readText = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

/** A user, as the provider describes it. */
export interface Identity {
  readonly user: UserIdentity;
  /** All claims, at most 16 KiB; `groups` comes from OIDC_GROUPS_CLAIM. */
  readonly claims: JsonObject;
  /** Claims that only the userinfo endpoint gave. */
  readonly userinfoClaims: readonly string[];
  /** OpenID Connect Back-Channel Logout §2.1. */
  readonly sid: string | undefined;
}

/** The provider's answer must match it. */
export interface ExpectedIdentity {
  /** OpenID Connect Core §3.1.3.7: nonce of the login. */
  readonly nonce: string | undefined;
  /** OpenID Connect Core §12.2: the former identity, which must have the same user; its claims stay where the answer has none. */
  readonly earlier: EarlierIdentity | undefined;
  /** There was no token request: the stored access token may have been revoked. */
  readonly isHeldToken?: boolean;
}

export interface EarlierIdentity extends Pick<Identity, 'user' | 'claims'> {
  /** If undefined, all claims count as those of the ID token. */
  readonly userinfoClaims?: readonly string[] | undefined;
}

/** Claims by source; undefined for a source that was not asked, or did not answer. */
export interface ClaimSources {
  readonly idToken: JsonObject | undefined;
  readonly userinfo: JsonObject | undefined;
}

/** The ID token is signed, and takes precedence. */
export function joinClaims({ idToken = {}, userinfo = {} }: ClaimSources): JsonObject {
  // It does not apply to an address that only userinfo has.
  if (idToken.email === undefined && typeof userinfo.email === 'string')
    return { ...userinfo, ...select(idToken, isNotAboutEmail) };
  const isOfOther = userinfo.email !== idToken.email;
  return { ...(isOfOther ? select(userinfo, isNotAboutEmail) : userinfo), ...idToken };
}

/** Claims that describe one address: verified, and hosted by an organization (Google). */
const ABOUT_EMAIL = new Set(['email_verified', 'xms_edov', 'hd']);

const isNotAboutEmail = (name: string) => !ABOUT_EMAIL.has(name);

const select = (claims: JsonObject, isMeant: (name: string) => boolean): JsonObject =>
  Object.fromEntries(Object.entries(claims).filter(([name]) => isMeant(name)));

/**
 * A claim keeps its value if its source gives no answer now: a refresh may return no ID token, and userinfo may be unavailable. If the
 * source answers without the claim, the claim is removed. Claims about an address go with it. `kept` lists the claims that keep their
 * former value.
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
/** Number of claims that an error names. */
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

/** `problem` is a sentence to follow that of the catalogue. @throws GatewayError `unusable_identity`, always. */
export const failIdentity = (problem: string, facts: JsonObject, cause?: unknown): never =>
  fail('unusable_identity', {
    details: `${catalogue.unusable_identity.details} ${problem}`,
    facts,
    cause,
  });

// Finds a claim by its name in settings.

/**
 * A member of exactly this name comes first, also one with dots, such as a URL. Otherwise the name is a path: the part before its first
 * dot, and the rest within it by the same rule. Undefined if there is none; inherited members are ignored.
 */
export function findClaim(claims: JsonObject, name: string): unknown {
  if (Object.hasOwn(claims, name)) return claims[name];
  const dot = name.indexOf('.');
  if (dot === -1) return undefined;
  const head = name.slice(0, dot);
  const inner = Object.hasOwn(claims, head) ? claims[head] : undefined;
  return isObject(inner) ? findClaim(inner, name.slice(dot + 1)) : undefined;
}
