// §5.11: the token endpoint of broker mode, where a client refreshes or comes by another grant type; and revocation.

import { fail } from '../../errors/gateway-error.ts';
import type { JudgedRequest, KnownLogin } from '../../http/endpoint/endpoint.ts';
import type { PendingReply, Reply, RequestBody } from '../../http/endpoint/message.ts';
import { parseBody, type RequestParameters } from '../../http/endpoint/parameters.ts';
import type {
  AuthenticationRequest,
  ClientAuthentication,
  ProvenClient,
} from '../client-authentication/authenticate-client.ts';
import { hasCredentials } from '../client-authentication/read-credentials.ts';
import type { Clients } from '../clients/clients.ts';
import { type Grant, hasRefreshToken, nameUser, noteFirstUse } from '../grants/grant.ts';
import type { StoredGrant } from '../grants/grants.ts';
import { addFacts } from '../request/login-facts.ts';
import { decideRefresh, type RefreshDecision, readAskedPair } from './decide-refresh.ts';
import { failGrant, type TokenIssue } from './issue-grant.ts';
import type { Broker } from './open-broker.ts';
import { failTarget } from './resources.ts';

/** A grant type: judges the request, and returns what is left to do. */
export type GiveTokens = (request: AuthenticationRequest) => Promise<JudgedRequest>;

/** `grantTypes` are those that are offered beside the refresh token, by name. */
export function createBrokerToken(
  { runtime, ownTokens: { codec, grants }, ends, renewal }: Broker,
  clients: Clients,
  answer: TokenIssue['answer'],
  grantTypes: ReadonlyMap<string, GiveTokens | undefined>,
) {
  const { oauth, clock, log } = runtime;

  /** RFC 6749 §6. */
  async function refresh(parameters: RequestParameters): Promise<PendingReply> {
    const text = parameters.require('refresh_token');
    const clientId = parameters.require('client_id');
    const token = codec.readRefreshToken(text) ?? failGrant('The refresh token is unknown.');
    return addFacts({ grantId: token.grantId }, async () => {
      const [client, found] = await Promise.all([
        clients.requireWithoutFetch(clientId),
        grants.read(token.grantId),
      ]);
      const stored = found ?? failGrant(ENDED);
      const { grant: seen } = stored;
      if (seen.client.id !== clientId) failGrant('The refresh token was issued to another client.');
      // Its access tokens are good for nothing here, and no provider is sent the refresh token of another.
      if (seen.user.issuer !== oauth.provider.issuer) failGrant(ENDED);
      const asked = readAskedPair(parameters, client, runtime);
      const decide = (grant: Grant) => decideRefresh(grant, token, asked, runtime, clock.now());
      return addFacts(nameUser(seen.user), async () => async () => {
        // Before the provider is asked, who might take it for a second use of its own.
        if (decide(seen).kind === 'reused') await endReused(seen);
        const renewed = (await renewal.renewIfDue(stored)) ?? failGrant(ENDED);
        const [grant] = await Promise.all([rotate(renewed, decide), clients.recordUse(client)]);
        return answer(grant, grant.client.name ?? client.name, true);
      });
    });
  }

  /** Another request, at another replica perhaps, may have rotated it: then that one's tokens are the answer. */
  async function rotate(stored: StoredGrant, decide: (grant: Grant) => RefreshDecision) {
    let decided: RefreshDecision['kind'] | undefined;
    const changed = await grants.updateForTokens(stored, (grant) => {
      const decision = decide(grant);
      decided = decision.kind;
      if (decision.kind === 'rotated') return grants.capExpiry(decision.grant);
      return decision.kind === 'again' && decision.isFirstUse ? noteFirstUse(grant) : undefined;
    });
    if (changed === undefined) failGrant(ENDED);
    if (decided === 'otherScope') fail('invalid_scope');
    if (decided === 'otherResource') failTarget();
    if (decided === 'replaced') failGrant(REPLACED);
    if (decided === 'reused') return endReused(changed.grant);
    return changed.grant;
  }

  /** RFC 9700 §4.14.2: whose of the two it is, nobody can tell. */
  async function endReused({ id, user, client }: Grant): Promise<never> {
    await ends.endGrant(id, 'reuse');
    log.warn(
      'A refresh token was used that had been replaced, after its successor was in use. It may have been stolen, so the login has ended.',
      { ...nameUser(user), client: client.id, grant: id },
    );
    return fail('refresh_token_reused');
  }

  return {
    async token(body: RequestBody, authorization: string | undefined) {
      const parameters = parseBody(body);
      const grantType = parameters.require('grant_type');
      if (grantType === 'refresh_token') return refresh(parameters);
      const give = grantTypes.get(grantType) ?? fail('unsupported_grant_type');
      return give({ body, parameters, authorization });
    },
    /** §8: refreshes are counted by their grant. */
    findKnownId: (refreshToken: string) => codec.readRefreshToken(refreshToken)?.grantId,
    async findLogin(
      refreshToken: string,
      { clientId }: { readonly clientId: string },
    ): Promise<KnownLogin | undefined> {
      const token = codec.readRefreshToken(refreshToken);
      if (token === undefined) return undefined;
      const stored = await grants.read(token.grantId);
      if (stored?.grant.client.id !== clientId) return undefined;
      const { grant } = stored;
      // Whoever brings one that was replaced must not use up what the login has.
      if (token.generation < (grant.replaced?.generation ?? grant.issued.generation))
        return undefined;
      // However many come, the provider is asked once in OAUTH_RENEWAL_SECONDS: where that is seldom.
      return { id: grant.id, isAnswered: oauth.tokens.renewalSeconds >= SELDOM_SECONDS };
    },
  };
}

/** The window of limits. */
const SELDOM_SECONDS = 60;

const REPLACED =
  'The refresh token was replaced. Use the one that came with the last answer, or ask for the same scope and resource.';

const ENDED = 'The login has ended. Log in again.';

// RFC 7009 in broker mode: whichever of its two tokens a client revokes, its login ends.

export function createBrokerRevoke(
  { ownTokens: { codec, grants }, ends }: Broker,
  clients: Clients,
  { authenticate }: ClientAuthentication<ProvenClient>,
) {
  return async function revoke(
    body: RequestBody,
    authorization: string | undefined,
  ): Promise<JudgedRequest> {
    const parameters = parseBody(body);
    const token = parameters.require('token');
    const own = codec.readRefreshToken(token) ?? codec.readAccessToken(token);
    const stored = own && (await grants.read(own.grantId));
    const request = { body, parameters, authorization };
    const named = parameters.get('client_id');
    const isPublic = named !== undefined && clients.isKnownClient(named);
    // A client that proved to be itself to get the token does so here, too (RFC 7009 §2.1); the others are public, and say who they are.
    const hasProved = stored !== undefined && !hasRefreshToken(stored.grant);
    const proves = hasProved || (!isPublic && hasCredentials(parameters, authorization));
    const proven = proves ? await authenticate(request) : undefined;
    const clientId = proven?.client.id ?? parameters.require('client_id');
    if (proven === undefined) await clients.requireWithoutFetch(clientId);
    // RFC 7009 §2.2: what is none, or none any more, is revoked already. Anybody could have made it up.
    if (stored === undefined)
      return {
        async runAnonymous() {
          await proven?.useUp();
          return { ...REVOKED, ...(own && { facts: { grantId: own.grantId } }) };
        },
      };
    const { id, client, user } = stored.grant;
    // RFC 7009 §2.1: a token of another client is refused.
    if (client.id !== clientId) failGrant('The token was issued to another client.');
    return async function endAndAnswer() {
      await proven?.useUp();
      await ends.endGrant(id, 'client');
      return { ...REVOKED, facts: { ...nameUser(user), grantId: id } };
    };
  };
}

const REVOKED: Reply = { status: 200, headers: { 'Cache-Control': 'no-store' } };
