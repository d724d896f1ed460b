// §5.11: the token endpoint of broker mode.
import type { TokensConfig } from '../../config/groups/own-tokens.ts';
import { fail } from '../../errors/gateway-error.ts';
import type { JudgedRequest, KnownLogin } from '../../http/endpoint/endpoint.ts';
import type { PendingReply, Reply, RequestBody } from '../../http/endpoint/message.ts';
import { parseBody, type RequestParameters } from '../../http/endpoint/parameters.ts';
import type { Client } from '../clients/clients.ts';
import { type Grant, nameUser, noteFirstUse } from '../grants/grant.ts';
import type { Grants, StoredGrant } from '../grants/grants.ts';
import type { RefreshToken, TokenCodec } from '../grants/token-codec.ts';
import type { GiveByAssertion } from '../id-jag/jwt-bearer.ts';
import type { ProviderParametersConfig } from '../provider/provider-parameters.ts';
import { addFacts, JWT_BEARER, type LogLogin } from '../request/login-facts.ts';
import type { WriteTokens } from './answer.ts';
import type { createClientCredentials } from './client-credentials.ts';
import { type AskedPair, decideRefresh, type RefreshDecision } from './decide-refresh.ts';
import { createRedeemCode, type RedeemCodeDeps, readAskedPair } from './redeem-code.ts';
import type { GrantRenewal } from './renew-grant.ts';
import { coversResource, failTarget } from './resources.ts';

export interface BrokerTokenDeps extends Omit<RedeemCodeDeps, 'answer'> {
  readonly config: RedeemCodeDeps['config'] &
    Pick<TokensConfig, 'renewalSeconds'> &
    Pick<ProviderParametersConfig, 'provider'>;
  readonly codec: Pick<TokenCodec, 'readRefreshToken'>;
  readonly grants: Grants;
  readonly renewal: Pick<GrantRenewal, 'renewIfDue'>;
  readonly writeTokens: WriteTokens;
  readonly giveToken: ReturnType<typeof createClientCredentials>;
  /** Undefined where no assertion is taken. */
  readonly giveByAssertion: GiveByAssertion | undefined;
  readonly logLogin: LogLogin;
}

export interface BrokerTokenEndpoint {
  token(body: RequestBody, authorization: string | undefined): Promise<JudgedRequest>;
  /** §8: refreshes are counted by their grant. */
  findKnownId(refreshToken: string, clientId: string): string | undefined;
  findLogin(
    refreshToken: string,
    asked: { readonly clientId: string },
  ): Promise<KnownLogin | undefined>;
}

export function createBrokerToken(deps: BrokerTokenDeps): BrokerTokenEndpoint {
  const { config, clients, codec, grants, renewal, clock } = deps;

  const redeemCode = createRedeemCode({
    ...deps,
    answer: (grant, client) => answer(grant, client, false),
  });

  async function refresh(parameters: RequestParameters): Promise<PendingReply> {
    const text = parameters.require('refresh_token');
    const clientId = parameters.require('client_id');
    const token = codec.readRefreshToken(text) ?? failGrant('The refresh token is unknown.');
    return addFacts({ grantId: token.grantId }, () => refreshBy(token, clientId, parameters));
  }

  async function refreshBy(
    token: RefreshToken,
    clientId: string,
    parameters: RequestParameters,
  ): Promise<PendingReply> {
    const [client, found] = await Promise.all([
      clients.requireWithoutFetch(clientId),
      grants.read(token.grantId),
    ]);
    const stored = found ?? failGrant(ENDED);
    if (stored.grant.client.id !== clientId) {
      failGrant('The refresh token was issued to another client.');
    }
    // Its access tokens are good for nothing here, and no provider is sent the refresh token of another.
    if (stored.grant.user.issuer !== config.provider.issuer) failGrant(ENDED);
    const asked = readAskedPair(parameters, client, config);
    return addFacts(
      nameUser(stored.grant.user),
      async () => () => refreshAndAnswer(stored, token, asked, client),
    );
  }

  async function refreshAndAnswer(
    stored: StoredGrant,
    token: RefreshToken,
    asked: AskedPair,
    client: Client,
  ): Promise<Reply> {
    // Before the provider is asked, who might take it for a second use of its own.
    if (decide(stored.grant, token, asked).kind === 'reused') await endReused(stored.grant);
    const renewed = (await renewal.renewIfDue(stored)) ?? failGrant(ENDED);
    const [grant] = await Promise.all([rotate(renewed, token, asked), clients.recordUse(client)]);
    return answer(grant, client, true);
  }

  const decide = (grant: Grant, token: RefreshToken, asked: AskedPair): RefreshDecision =>
    decideRefresh(grant, token, asked, {
      now: clock.now(),
      accessSeconds: config.accessSeconds,
      covers: (resource) => coversResource(grant.resources, resource, config),
    });

  /** Another request, at another replica perhaps, may have rotated it: then that one's tokens are the answer. */
  async function rotate(
    stored: StoredGrant,
    token: RefreshToken,
    asked: AskedPair,
  ): Promise<Grant> {
    let refusal: 'reused' | 'replaced' | 'scope' | 'resource' | undefined;
    function change(grant: Grant): Grant | undefined {
      refusal = undefined;
      const decision = decide(grant, token, asked);
      if (decision.kind === 'rotated') return grants.capExpiry(decision.grant);
      if (decision.kind === 'again') return decision.isFirstUse ? noteFirstUse(grant) : undefined;
      refusal = decision.kind === 'notGranted' ? decision.what : decision.kind;
      return undefined;
    }
    const changed = await grants.updateForTokens(stored, change);
    if (changed === undefined) failGrant(ENDED);
    if (refusal === 'scope') fail('invalid_scope');
    if (refusal === 'resource') failTarget();
    if (refusal === 'replaced') failGrant(REPLACED);
    if (refusal === 'reused') return endReused(changed.grant);
    return changed.grant;
  }

  /** RFC 9700 §4.14.2: whose of the two it is, nobody can tell. */
  async function endReused({ id, user, client }: Grant): Promise<never> {
    await deps.endGrant(id, 'reuse');
    deps.log.warn(
      'A refresh token was used that had been replaced, after its successor was in use. It may have been stolen, so the login has ended.',
      { ...nameUser(user), client: client.id, grant: id },
    );
    return fail('refresh_token_reused');
  }

  function answer(grant: Grant, client: Client, isRefresh: boolean): Reply {
    const { name = client.name } = grant.client;
    const login = { clientId: client.id, clientName: name, ...nameUser(grant.user), isRefresh };
    const facts = { ...deps.logLogin(login), grantId: grant.id };
    return { ...deps.writeTokens(grant, clock.now()), facts };
  }

  return {
    async token(body, authorization) {
      const parameters = parseBody(body);
      const grantType = parameters.require('grant_type');
      if (grantType === 'authorization_code') return redeemCode(parameters);
      if (grantType === 'refresh_token') return refresh(parameters);
      if (grantType === 'client_credentials')
        return deps.giveToken({ body, parameters, authorization });
      if (grantType === JWT_BEARER && deps.giveByAssertion !== undefined)
        return deps.giveByAssertion({ body, parameters, authorization });
      return fail('unsupported_grant_type');
    },
    findKnownId: (refreshToken) => codec.readRefreshToken(refreshToken)?.grantId,
    async findLogin(refreshToken, { clientId }) {
      const token = codec.readRefreshToken(refreshToken);
      if (token === undefined) return undefined;
      const stored = await grants.read(token.grantId);
      if (stored?.grant.client.id !== clientId) return undefined;
      const { grant } = stored;
      // Whoever brings one that was replaced must not use up what the login has.
      if (token.generation < (grant.replaced?.generation ?? grant.issued.generation)) {
        return undefined;
      }
      // However many come, the provider is asked once in OAUTH_RENEWAL_SECONDS: where that is seldom.
      return { id: grant.id, isAnswered: config.renewalSeconds >= SELDOM_SECONDS };
    },
  };
}

/** The window of limits. */
const SELDOM_SECONDS = 60;

const REPLACED =
  'The refresh token was replaced. Use the one that came with the last answer, or ask for the same scope and resource.';

const ENDED = 'The login has ended. Log in again.';

function failGrant(details: string): never {
  return fail('invalid_grant', { details });
}
