// §13.2: reads the user from the provider's token response: from its ID token, and from its userinfo endpoint only if the ID token
// lacks groups, an e-mail address or a claim that the configuration names, or to ask again with a token that lives until revoked.

import type { ProviderQuirks } from '../../config/provider-profiles.ts';
import { catalogue } from '../../errors/catalogue.ts';
import { fail } from '../../errors/gateway-error.ts';
import { readEmail } from '../../http/endpoint/message.ts';
import type { ProviderMetadata } from '../../http/oauth-client/provider-metadata.ts';
import { type FetchedResponse, fetchWithLimits } from '../../platform/fetch-with-limits.ts';
import { type JsonObject, parseObject } from '../../platform/json.ts';
import { quote } from '../../platform/text.ts';
import { createWarnOnce } from '../../platform/throttle.ts';
import type { IdTokenVerifier } from '../auth/id-token.ts';
import type { BrokerRuntime } from '../broker/runtime.ts';
import type { UserIdentity } from '../grants/grant.ts';
import {
  askForGroups,
  checkClaimSize,
  type ExpectedIdentity,
  failIdentity,
  findClaim,
  findOverageEndpoint,
  type Identity,
  joinClaims,
  mergeRenewedClaims,
  readGroups,
  readText,
} from './identity.ts';

/**
 * Undefined if a stored access token is refused: the provider has ended the login.
 *
 * @throws GatewayError for an answer without the user, or about another one: `unusable_id_token`, `unusable_identity`,
 * `invalid_grant`;
 * `upstream_failed` or `key_set_unavailable` if a later try may succeed.
 */
export type ReadIdentity = (
  answer: JsonObject,
  expected: ExpectedIdentity,
) => Promise<Identity | undefined>;

/** Default claim of groups, which most providers do not have. */
const DEFAULT_GROUPS_CLAIM = 'groups';

export function createReadIdentity(
  { oauth, fetch, log, servers }: Pick<BrokerRuntime, 'oauth' | 'fetch' | 'log' | 'servers'>,
  verifier: IdTokenVerifier,
  metadata: ProviderMetadata,
): ReadIdentity {
  const { identity: config, provider } = oauth;
  const { groupsClaim } = config;
  const warnOnce = createWarnOnce(log);

  return async function readIdentity(answer, { nonce, earlier, isHeldToken = false }) {
    const accessToken = readText(answer.access_token);
    const token = readText(answer.id_token);
    const expected = { nonce, accessToken, earlier: earlier?.user };
    const idToken = token === undefined ? undefined : await verifier.verify(token, expected);
    let user = idToken && { issuer: idToken.iss, sub: idToken.sub };
    // OpenID Connect Core §12.2: only the response to a refresh may lack an ID token.
    if (user === undefined && earlier?.user.issuer === metadata.issuer) user = earlier.user;
    if (user === undefined) return failWithoutIdToken();
    const userinfo = isHeldToken
      ? await askAgain(accessToken, user)
      : await askForMissing(idToken ?? {}, accessToken, user);
    if (userinfo === 'ended') return undefined;
    const sources = { idToken, userinfo };
    const given = joinClaims(sources);
    const { claims: joined, kept } =
      earlier === undefined ? { claims: given, kept: [] } : mergeRenewedClaims(earlier, sources);
    const named = [...new Set([...listNeededClaims(), groupsClaim, 'email'])];
    const keptNames = named.filter((name) => kept.includes(name.split('.', 1)[0] ?? name));
    if (keptNames.length > 0) warnOnce('kept', KEPT, { claims: keptNames });
    const claims = await addGroups(joined, given, accessToken);
    checkClaimSize(claims);
    // Claims from userinfo only, now or in an earlier answer.
    const earlierNames = earlier?.userinfoClaims ?? [];
    const userinfoClaims = Object.keys(claims).filter(
      (name) =>
        !Object.hasOwn(idToken ?? {}, name) &&
        (Object.hasOwn(userinfo ?? {}, name) || earlierNames.includes(name)),
    );
    return { user, claims, userinfoClaims, sid: readText(idToken?.sid) };
  };

  /** @throws GatewayError `unusable_identity` for an answer about another user. */
  async function askUserinfo(accessToken: string, sub: string): Promise<UserinfoAnswer> {
    let response: FetchedResponse;
    try {
      const { userinfo_endpoint: url } = await metadata.get();
      if (url === undefined) return { kind: 'none' };
      const headers = { Authorization: `Bearer ${accessToken}`, Accept: 'application/json' };
      response = await fetchWithLimits(fetch, url, { headers }, LIMITS);
    } catch (cause) {
      const problem = "The provider's userinfo endpoint could not be asked.";
      return { kind: 'failed', problem, isTemporary: true, isRefused: false, cause };
    }
    return readAnswer(response, sub, provider.quirks.errorCodes);
  }

  /** Checks with an access token that is valid until it is revoked. */
  async function askAgain(accessToken: string | undefined, { sub }: UserIdentity) {
    if (accessToken === undefined) return failWithoutIdToken();
    const answer = await askUserinfo(accessToken, sub);
    if (answer.kind === 'none') return failWithoutIdToken();
    if (answer.kind === 'claims') return answer.claims;
    return answer.isRefused ? 'ended' : failWithoutUserinfo(answer, ['sub']);
  }

  /** Undefined if no claim is missing, and if userinfo is unavailable and not needed. */
  async function askForMissing(
    idToken: JsonObject,
    accessToken: string | undefined,
    { sub }: UserIdentity,
  ): Promise<JsonObject | undefined> {
    const isMissing = (name: string) => !isSaid(idToken, name, groupsClaim);
    const needed = listNeededClaims().filter(isMissing);
    const isComplete = needed.length === 0 && ![groupsClaim, 'email'].some(isMissing);
    if (isComplete || accessToken === undefined) return undefined;
    const answer = await askUserinfo(accessToken, sub);
    if (answer.kind === 'claims') return answer.claims;
    if (answer.kind === 'failed') {
      if (needed.length > 0) failWithoutUserinfo(answer, needed);
      warnOnce('userinfo', `${answer.problem} Users have the claims of the ID token alone.`, {
        cause: answer.cause,
      });
    }
    return undefined;
  }

  /** Claims that the operator named. Without them, rules cannot decide on the user. */
  function listNeededClaims(): readonly string[] {
    const { allowedEmails, allowedGroups, allowedClaims } = config;
    const needsGroups = allowedGroups.length > 0 || groupsClaim !== DEFAULT_GROUPS_CLAIM;
    return [
      ...new Set([
        ...(allowedEmails.length > 0 ? ['email', EMAIL_VERIFIED] : []),
        ...(needsGroups ? [groupsClaim] : []),
        ...allowedClaims.map(([name]) => name),
        ...servers.listNamedClaims().map((name) => (name === 'groups' ? groupsClaim : name)),
      ]),
    ];
  }

  async function addGroups(joined: JsonObject, given: JsonObject, accessToken: string | undefined) {
    const endpoint = findOverageEndpoint(given, groupsClaim);
    const follows = endpoint !== undefined && config.followsGroupsOverage;
    if (endpoint !== undefined && !follows)
      warnOnce(
        'overage',
        'The provider left the groups of a user out of the ID token because there are too many: the user has none here. Set OIDC_GROUPS_OVERAGE=true to read them from Microsoft Graph, or have Entra send only the groups that are assigned to the application.',
        { claim: groupsClaim },
      );
    const all = follows
      ? { ...joined, [groupsClaim]: await askForGroups(fetch, endpoint, accessToken) }
      : joined;
    const groups = readGroups(all, groupsClaim);
    if (groups === undefined && findClaim(all, groupsClaim) !== undefined)
      warnOnce(
        'groups',
        'The claim that OIDC_GROUPS_CLAIM names is neither a string nor a list of strings, so it gives no groups.',
        { claim: groupsClaim },
      );
    // Distributed claims may come with an access token.
    const { _claim_sources: _, groups: __, ...rest } = all;
    return groups === undefined ? rest : { ...rest, groups };
  }
}

const KEPT =
  "The provider's answer to a refresh does not say all claims again, and its userinfo endpoint does not, either: they keep the values of the login until the user logs in again.";

const EMAIL_VERIFIED = 'email_verified';

/** True if the claims have this one. Some providers mark a verified address by another claim, and some distribute groups. */
function isSaid(claims: JsonObject, name: string, groupsClaim: string) {
  if (name === EMAIL_VERIFIED) return readEmail(claims).emailVerified !== undefined;
  if (name === groupsClaim && findOverageEndpoint(claims, groupsClaim) !== undefined) return true;
  return findClaim(claims, name) !== undefined;
}

/** @throws GatewayError always. */
function failWithoutUserinfo(
  { problem, isTemporary, cause }: UserinfoFailure,
  needed: readonly string[],
): never {
  if (isTemporary) fail('upstream_failed', { cause: cause ?? new Error(problem) });
  return failIdentity(
    `${problem} It is needed for ${needed.join(', ')}, which the ID token does not have.`,
    { problem, claims: needed },
    cause,
  );
}

const failWithoutIdToken = (): never =>
  fail('unusable_id_token', {
    details: `${catalogue.unusable_id_token.details} There is none in its answer: OIDC_ISSUER must be an OpenID provider, and the scope openid allowed for the gateway's client.`,
    facts: { member: 'id_token', found: undefined, expected: 'an ID token' },
  });

// OpenID Connect Core §5.3: requests the userinfo endpoint with the provider's access token.

type UserinfoAnswer =
  | { readonly kind: 'claims'; readonly claims: JsonObject }
  /** The provider has no such endpoint. */
  | { readonly kind: 'none' }
  | UserinfoFailure;

interface UserinfoFailure {
  readonly kind: 'failed';
  /** A sentence. */
  readonly problem: string;
  /** It may be temporary. */
  readonly isTemporary: boolean;
  /** The access token is refused (RFC 6750 §3.1). */
  readonly isRefused: boolean;
  readonly cause?: unknown;
}

const LIMITS = { timeoutMs: 5000, maxBytes: 262_144 };

function readAnswer(
  { status, headers, body }: FetchedResponse,
  sub: string,
  errorCodes: ProviderQuirks['errorCodes'] = {},
): UserinfoAnswer {
  if (status !== 200) {
    const problem = `The provider's userinfo endpoint answered ${status}.`;
    const isTemporary = status >= 500 || status === 408 || status === 429;
    return { kind: 'failed', problem, isTemporary, isRefused: status === 401 };
  }
  const type = headers.get('content-type') ?? '';
  const claims = /^application\/json\s*(;|$)/i.test(type) ? parseObject(body) : undefined;
  if (claims === undefined) {
    const advice = /^application\/jwt\b/i.test(type)
      ? ' Switch signed userinfo off for this client at the provider.'
      : '';
    const problem = `The provider's userinfo endpoint answered no JSON object (its content type is ${quote(type)}).${advice}`;
    return { kind: 'failed', problem, isTemporary: false, isRefused: false };
  }
  const { error, sub: found } = claims;
  // Slack refuses with status 200.
  if (typeof error === 'string' && found === undefined) {
    const code = errorCodes[error] ?? error;
    return {
      kind: 'failed',
      problem: `The provider's userinfo endpoint answered 200 with the error ${quote(error)}.`,
      isTemporary: TEMPORARY.has(code),
      isRefused: REFUSALS.has(code),
    };
  }
  if (found === sub) return { kind: 'claims', claims };
  // OpenID Connect Core §5.3.2, §5.3.4: the answer must not be used, and the access token may belong to another user.
  return failIdentity(
    `Its userinfo endpoint names another user than its ID token: the sub is ${quote(found)} and must be ${quote(sub)}.`,
    { member: 'sub', found: quote(found), expected: sub },
  );
}

const TEMPORARY = new Set(['temporarily_unavailable', 'server_error']);
const REFUSALS = new Set(['invalid_token', 'invalid_grant']);
