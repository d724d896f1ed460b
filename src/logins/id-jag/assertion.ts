// draft-ietf-oauth-identity-assertion-authz-grant §3.1, RFC 7523 §3: verifies assertions: statements of an identity provider about
// one of its users, for one authorization server and one client.

import { isWellFormedScope, parseScope } from '../../config/rules.ts';
import { fail, GatewayError } from '../../errors/gateway-error.ts';
import {
  createProviderMetadata,
  type IssuerSetting,
  type ProviderMetadata,
} from '../../http/oauth-client/provider-metadata.ts';
import { isSafeForTokens } from '../../platform/address.ts';
import { isStringArray, type JsonObject } from '../../platform/json.ts';
import { stripUri } from '../../platform/secret-texts.ts';
import { quote } from '../../platform/text.ts';
import { createKeySet, type KeySet } from '../auth/key-set.ts';
import { MACHINE_SUBJECT_PREFIX } from '../auth/machine-clients.ts';
import {
  createReadToken,
  nameMember,
  type ProviderTokenKind,
  requireSigner,
} from '../auth/provider-token.ts';
import { isTime, readSubject } from '../auth/token-verifier.ts';
import type { BrokerRuntime } from '../broker/runtime.ts';
import type { UserIdentity } from '../grants/grant.ts';

/** A verified assertion. */
export interface Assertion {
  readonly user: UserIdentity;
  /** All its claims. */
  readonly claims: JsonObject;
  readonly jti: string;
  /** Epoch seconds. */
  readonly exp: number;
  readonly scopes: readonly string[];
  /** RFC 8707: its audience; undefined if it names none. */
  readonly resources: readonly string[] | undefined;
  /** OpenID Connect Back-Channel Logout §2.1: session at the provider. */
  readonly sid: string | undefined;
}

/** Settings and further values that claims are compared with. Times are epoch seconds. */
interface ExpectedAssertion {
  /** Our issuer: `BASE_URL`. */
  readonly baseUrl: string;
  readonly tolerance: number;
  readonly issuer: string;
  readonly clientId: string;
  readonly now: number;
}

export type VerifyAssertion = ReturnType<typeof createVerifyAssertion>;

export function createVerifyAssertion(
  { clock, baseUrl, oauth }: BrokerRuntime,
  issuers: ReturnType<typeof createAssertionIssuers>,
) {
  const readToken = createReadToken(KIND);
  const tolerance = oauth.tokens.clockToleranceSeconds;

  /**
   * `clientId` is the ID of an authenticated client. Whether the assertion was used before is checked elsewhere.
   *
   * @throws GatewayError `unusable_assertion` with member, found and expected; `assertion_keys_unavailable`.
   */
  return async function verifyAssertion(text: string, clientId: string): Promise<Assertion> {
    const { token, claims } = readToken(text);
    const { iss: issuer } = claims;
    const keySet = issuers.findKeySet(issuer);
    if (keySet === undefined || typeof issuer !== 'string')
      return failMember('iss', issuer, `one of ID_JAG_ISSUERS: ${issuers.names.join(', ')}`);
    await requireSigner(KIND, token, keySet).catch((thrown: unknown) => {
      if (!(thrown instanceof GatewayError) || thrown.row.status !== 503) throw thrown;
      const { cause } = thrown.failure;
      fail('assertion_keys_unavailable', { headers: { 'Retry-After': '2' }, cause });
    });
    const now = clock.now() / 1000;
    const expected = { baseUrl, tolerance, issuer, clientId, now };
    for (const check of CHECKS) check(claims, expected);
    const sub = nameMember(KIND, 'sub', () => readSubject(claims, baseUrl));
    if (sub.startsWith(MACHINE_SUBJECT_PREFIX)) failMember('sub', sub, 'a user, not a client');
    return {
      user: { issuer, sub },
      claims,
      jti: readText('jti', claims.jti),
      exp: readTime('exp', claims.exp),
      scopes: readScopes(claims),
      resources: readResources(claims),
      sid: claims.sid === undefined ? undefined : readText('sid', claims.sid),
    };
  };
}

/** Clients use an assertion at once: most providers issue them for five minutes. */
const MAX_LIFETIME_SECONDS = 3600;
const MAX_TEXT = 256;
/** Limit of one list. */
const MAX_ITEMS = 20;
/** Enough for the claims of a user in many groups. */
const MAX_BYTES = 16_384;

/** Names the assertion in errors of checks that access tokens share. */
const KIND: ProviderTokenKind = {
  name: 'assertion',
  form: {
    kind: 'an ID-JAG',
    type: /^oauth-id-jag\+jwt$/,
    isTypeRequired: true,
    types: 'oauth-id-jag+jwt',
    advice: {
      opaque: 'An ID-JAG is one: exchange an ID token at the identity provider for it.',
      encrypted: 'Switch encryption of ID-JAGs off at the identity provider.',
      signedBySecret: 'Choose another signature algorithm at the identity provider.',
    },
  },
  maxBytes: MAX_BYTES,
  fail: (member, problem, { found, expected }) =>
    fail('unusable_assertion', { facts: { member, found, expected, problem } }),
};

type Check = (claims: JsonObject, expected: ExpectedAssertion) => void;

/** In order of report. */
const CHECKS: readonly Check[] = [
  ({ aud }, { baseUrl }) => {
    const [only, ...others] = Array.isArray(aud) ? aud : [aud];
    if (only !== baseUrl || others.length > 0) failMember('aud', aud, `exactly ${baseUrl}`);
  },
  ({ client_id: found }, { clientId }) => {
    if (found !== clientId) failMember('client_id', found, `the client that sent it: ${clientId}`);
  },
  checkTimes,
  (claims) => {
    // An assertion that is bound to a key proves nothing without that key (RFC 7800), and DPoP is not supported. With several
    // tenants, `sub` alone is ambiguous.
    for (const member of ['cnf', 'tenant'])
      if (Object.hasOwn(claims, member)) failMember(member, claims[member], 'no such claim');
  },
];

function checkTimes(claims: JsonObject, { now, tolerance }: ExpectedAssertion) {
  const exp = readTime('exp', claims.exp);
  const iat = readTime('iat', claims.iat);
  if (now >= exp + tolerance) failMember('exp', exp, `more than ${now - tolerance}`);
  if (iat > now + tolerance) failMember('iat', iat, `at most ${now + tolerance}`);
  if (exp <= iat) failMember('exp', exp, `more than its iat, ${iat}`);
  if (exp > iat + MAX_LIFETIME_SECONDS)
    failMember('exp', exp, `at most ${MAX_LIFETIME_SECONDS} s after its iat, ${iat}`);
  if (claims.nbf === undefined) return;
  const nbf = readTime('nbf', claims.nbf);
  if (nbf > now + tolerance) failMember('nbf', nbf, `at most ${now + tolerance}`);
}

/** None if it names none: the issuer decides on scopes. */
function readScopes({ scope }: JsonObject) {
  if (scope === undefined || scope === '') return [];
  const isRight = typeof scope === 'string' && isWellFormedScope(scope);
  return isRight ? parseScope(scope) : failMember('scope', scope, 'scopes with one space between');
}

function readResources({ resource }: JsonObject) {
  if (resource === undefined) return undefined;
  const list = typeof resource === 'string' ? [resource] : resource;
  return isStringArray(list) && list.length > 0 && list.length <= MAX_ITEMS
    ? list
    : failMember('resource', resource, `a URL, or a list of 1 to ${MAX_ITEMS}`);
}

function readText(member: string, found: unknown) {
  const isText = typeof found === 'string' && found !== '' && found.length <= MAX_TEXT;
  return isText ? found : failMember(member, found, `a text of 1 to ${MAX_TEXT} characters`);
}

const readTime = (member: string, found: unknown) =>
  isTime(found) ? found : failMember(member, found, 'a number of seconds');

/** `found` is cut: a stranger may have chosen it. @throws GatewayError always. */
export const failMember = (member: string, found: unknown, expected: string): never =>
  fail('unusable_assertion', { facts: { member, found: quote(found, MAX_TEXT), expected } });

// ID_JAG_ISSUERS: trusted issuers of assertions. Each has its own discovery document and key set, so that a slow issuer delays only
// its own users.

const SETTING: IssuerSetting = {
  variable: 'ID_JAG_ISSUERS',
  remedy: 'ID_JAG_ISSUERS',
  advice: 'If this is your provider, name it in ID_JAG_ISSUERS exactly as it names itself.',
};

/** `provider` is the one that users log in with; its keys have already been fetched. */
export function createAssertionIssuers(
  runtime: BrokerRuntime,
  issuers: readonly string[],
  provider: { readonly issuer: string; readonly keySet: KeySet },
) {
  const others = issuers.filter((issuer) => issuer !== provider.issuer);
  const opened = new Map(others.map((issuer) => [issuer, openKeySet(runtime, issuer)]));
  const all = issuers.includes(provider.issuer)
    ? new Map([...opened, [provider.issuer, provider.keySet]])
    : opened;

  return {
    /** For the log. */
    names: issuers,
    /** Undefined for an issuer that is not configured. */
    findKeySet: (issuer: unknown) => (typeof issuer === 'string' ? all.get(issuer) : undefined),
    close() {
      for (const keySet of opened.values()) keySet.close();
    },
  };
}

function openKeySet(runtime: BrokerRuntime, issuer: string) {
  const keySet = createKeySet(runtime, {
    metadata: requireSafeKeys(createProviderMetadata(runtime, issuer, SETTING)),
    owner: {
      name: `The key set of an issuer of assertions (${stripUri(issuer)})`,
      effect: 'until it is, its assertions cannot be checked',
      advice: 'Check ID_JAG_ISSUERS, the issuer, and the outbound network.',
    },
  });
  keySet.start();
  return keySet;
}

/** An attacker who can change keys in transit can impersonate anybody. */
const requireSafeKeys = (metadata: ProviderMetadata): ProviderMetadata => ({
  issuer: metadata.issuer,
  async get() {
    const document = await metadata.get();
    const { jwks_uri: url } = document;
    if (url !== undefined && isSafeForTokens(url)) return document;
    throw new Error(`the jwks_uri of ${stripUri(metadata.issuer)} is not https`);
  },
});
