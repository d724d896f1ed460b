// RFC 6749 §6, RFC 9700 §4.14.2: the grant type `refresh_token`: a client gets its last tokens again while half of their life is
// left, then new ones, and its refresh token is rotated.

import { fail } from '../../errors/gateway-error.ts';
import type { Clients } from '../clients/clients.ts';
import { type Grant, type IssuedPair, nameUser, noteFirstUse } from '../grants/grant.ts';
import type { LoginIndex } from '../refresh/recent-answers.ts';
import type { Broker } from './open-broker.ts';
import { type AskedPair, coversResource, failTarget, readAskedPair } from './resources.ts';
import type { BrokerRuntime } from './runtime.ts';
import { failGrant, type GrantType, type TokenIssue } from './token.ts';

export function createRefreshTokenGrant(
  { runtime, ownTokens: { codec, grants }, ends, renewal }: Broker,
  clients: Clients,
  { answer }: TokenIssue,
): GrantType {
  const { oauth, clock, log } = runtime;

  return async function refresh({ parameters, facts }) {
    // RFC 6749 §6: the parameters. The client is public, and names itself (RFC 6749 §3.2.1).
    const text = parameters.require('refresh_token');
    const clientId = parameters.require('client_id');
    const { grantId, generation } =
      codec.readRefreshToken(text) ?? failGrant('The refresh token is unknown.');
    facts.grantId = grantId;
    const [client, found] = await Promise.all([
      clients.requireWithoutFetch(clientId),
      grants.read(grantId),
    ]);
    const stored = found ?? failGrant(ENDED);
    const { user } = stored.grant;
    // RFC 6749 §10.4: the token is bound to the client that it was issued to.
    if (stored.grant.client.id !== clientId)
      failGrant('The refresh token was issued to another client.');
    // Access tokens for users of another issuer are not accepted here, and no provider is sent the refresh token of another.
    if (user.issuer !== oauth.provider.issuer) failGrant(ENDED);
    // RFC 6749 §6, RFC 8707 §2.2: the client may ask for a part of what was granted.
    const asked = { ...readAskedPair(parameters, clientId, runtime), generation };
    Object.assign(facts, nameUser(user));

    return async function rotate() {
      // Before the provider is contacted, which may mistake the renewal for a second use of its own token.
      if (decideRefresh(stored.grant, asked, runtime, clock.now()).kind === 'reused')
        return endReused();
      const renewed = (await renewal.renewIfDue(stored)) ?? failGrant(ENDED);
      let decided: RefreshDecision['kind'] | undefined;
      const [changed] = await Promise.all([
        // If another request, perhaps on another replica, has rotated the token, its tokens are the response.
        grants.updateForTokens(renewed, (grant) => {
          const decision = decideRefresh(grant, asked, runtime, clock.now());
          decided = decision.kind;
          if (decision.kind === 'rotated') return grants.capExpiry(decision.grant);
          return decision.kind === 'again' ? decision.grant : undefined;
        }),
        clients.recordUse(client),
      ]);
      if (changed === undefined) failGrant(ENDED);
      if (decided === 'otherScope') fail('invalid_scope');
      if (decided === 'otherResource') failTarget();
      if (decided === 'replaced') failGrant(REPLACED);
      if (decided === 'reused') return endReused();
      return answer(changed.grant, changed.grant.client.name ?? client.name, true);
    };

    /** RFC 9700 §4.14.2: the grant ends, since either of the two users of the token may be the thief. */
    async function endReused(): Promise<never> {
      await ends.endGrant(grantId, 'reuse');
      log.warn(
        'A refresh token was used again after its successor was in use. It may have been stolen, so the login has ended.',
        { ...nameUser(user), client: clientId, grant: grantId },
      );
      return fail('refresh_token_reused');
    }
  };
}

const REPLACED =
  'The refresh token was replaced. Use the one that came with the last response, or request the same scope and resource.';

const ENDED = 'The login has ended. Log in again.';

type RefreshDecision =
  /** The last tokens are given again. `grant` is set on their first use, which makes the replaced token worthless. */
  | { readonly kind: 'again'; readonly grant: Grant | undefined }
  /** The grant gets new tokens. */
  | { readonly kind: 'rotated'; readonly grant: Grant }
  /** The token was replaced, and a token of the new pair was used: a thief may have one of the two. */
  | { readonly kind: 'reused' }
  /** The token was replaced, and the request differs from the one that the new pair was issued for. */
  | { readonly kind: 'replaced' }
  /** It was not granted. */
  | { readonly kind: 'otherScope' | 'otherResource' };

/**
 * A replaced token is accepted for this long after its replacement, even if a token of the new pair was used, since a client's own
 * requests may cross.
 */
const REPLACED_MS = 60_000;

/** `now` in epoch milliseconds. */
function decideRefresh(
  grant: Grant,
  asked: AskedPair & Pick<IssuedPair, 'generation'>,
  { baseUrl, oauth }: Pick<BrokerRuntime, 'baseUrl' | 'oauth'>,
  now: number,
): RefreshDecision {
  const { issued, replaced } = grant;
  const { generation } = asked;
  // A later generation than the stored one: the store lost its last moments, and the client has what was issued in them.
  const isCurrent = generation >= issued.generation;
  // A client that lost the response tries again, perhaps hours later: accepted until a token of the new pair is used.
  const isStillGood =
    replaced?.generation === generation &&
    (!issued.isUsed || now - replaced.replacedAt <= REPLACED_MS);
  if (!isCurrent && !isStillGood) return { kind: 'reused' };
  const scopes = asked.scopes ?? grant.scopes;
  const resources = asked.resources ?? grant.resources;
  if (!includesAll(grant.scopes, scopes)) return { kind: 'otherScope' };
  if (!resources.every((one) => coversResource(grant.resources, one, { baseUrl })))
    return { kind: 'otherResource' };
  const isSameAsked = isSame(issued.scopes, scopes) && isSame(issued.resources, resources);
  // The replaced token gets the same response again or, once half of its lifetime has passed, new tokens for the same scopes and
  // resources.
  if (!isCurrent && !isSameAsked) return { kind: 'replaced' };
  const isKnown = generation <= issued.generation;
  if (isKnown && isFresh(issued, now) && isSameAsked) {
    const isFirstUse = isCurrent && replaced !== undefined && !issued.isUsed;
    return { kind: 'again', grant: isFirstUse ? noteFirstUse(grant) : undefined };
  }
  return {
    kind: 'rotated',
    grant: {
      ...grant,
      issued: {
        // A number is given out once: a token of a pair that no client received stays worthless.
        generation: Math.max(issued.generation, generation) + 1,
        issuedAt: now,
        expiresAt: now + oauth.tokens.accessSeconds * 1000,
        scopes,
        resources,
        isUsed: false,
      },
      // Using a replaced token does not extend its lifetime.
      replaced: { generation, replacedAt: isCurrent ? now : (replaced?.replacedAt ?? now) },
    },
  };
}

/** More than half of its lifetime is left. */
export const isFresh = ({ issuedAt, expiresAt }: IssuedPair, now: number): boolean =>
  expiresAt - now > (expiresAt - issuedAt) / 2;

const includesAll = (granted: readonly string[], asked: readonly string[]) =>
  asked.every((one) => granted.includes(one));

const isSame = (one: readonly string[], other: readonly string[]) =>
  one.length === other.length && includesAll(one, other);

// §8: refreshes are counted by their grant.

/** The window of limits. */
const SELDOM_SECONDS = 60;

export const createRefreshIndex = ({
  runtime: { oauth },
  ownTokens: { codec, grants },
}: Broker): LoginIndex => ({
  findKnownId: (refreshToken) => codec.readRefreshToken(refreshToken)?.grantId,
  async findLogin(refreshToken, { clientId }) {
    const token = codec.readRefreshToken(refreshToken);
    if (token === undefined) return undefined;
    const stored = await grants.read(token.grantId);
    if (stored?.grant.client.id !== clientId) return undefined;
    const { id, issued, replaced } = stored.grant;
    // The holder of a replaced token must not use up the limit of the login.
    if (token.generation < (replaced?.generation ?? issued.generation)) return undefined;
    // However many arrive, the provider is contacted once per OAUTH_RENEWAL_SECONDS: rarely enough to count as cheap.
    return { id, isCheap: oauth.tokens.renewalSeconds >= SELDOM_SECONDS };
  },
});
