// Tokens from the provider, in the name of the one client that it knows.

import type { ProviderEndpoints } from '../../auth/provider-metadata.ts';
import type { TokenInspection } from '../../auth/token-verifier.ts';
import type { BrokerConfig } from '../../config/groups/oauth.ts';
import { fail, type GatewayError } from '../../errors/gateway-error.ts';
import { parseObject } from '../../platform/json.ts';
import type { Client, Clients } from '../clients/clients.ts';
import type { LogLogin, NoteClient } from '../provider/issued-tokens.ts';
import {
  authenticateClient,
  type describeRefusal,
  failIfProviderClientRefused,
  type ProviderApi,
} from '../provider/provider-api.ts';
import { type ProviderTokenResponse, selectClientTokens } from '../provider/provider-parameters.ts';
import type { RecentAnswers } from '../refresh/recent-answers.ts';
import type { LoginFacts } from '../request/login-facts.ts';
import type { AskedTokens } from '../request/parameters.ts';
import { forwardRefusal, MISCONFIGURED } from './provider-refusals.ts';
import type { RefreshTokens } from './refresh-tokens.ts';

export interface TokenRequest {
  readonly client: Client;
  /** For the log. */
  readonly clientName: string | undefined;
  readonly form: readonly (readonly [string, string])[];
  /** What the ID token must repeat, where there is one. */
  readonly nonce: string | undefined;
  /** RFC 8707: what the tokens are asked for; a new refresh token inherits it. */
  readonly resources: readonly string[];
  readonly grantId: string;
  /** What the client sent. */
  readonly asked: AskedTokens;
  /** Undefined when a code is redeemed. */
  readonly refresh: RefreshTokenUse | undefined;
}

/** `sent` is not `held` where the answer to an earlier refresh could not be handed out. */
export interface RefreshTokenUse {
  /** The refresh token that the client has. */
  readonly held: string;
  /** The one that the provider is sent. */
  readonly sent: string;
  /** The grant's mark before the provider is asked. */
  readonly mark: string | undefined;
  /** Whether the held one is known to be its client's. */
  readonly isBound: boolean;
}

/** What the client gets, as data that can be stored; 0.1.0 stores the same members, without the facts. */
export interface TokenResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Of a refusal that the client can act on, for the log. */
  readonly error?: ReturnType<typeof describeRefusal>;
  readonly facts?: LoginFacts;
}

export type ObtainTokens = (request: TokenRequest) => Promise<TokenResponse>;

export interface ObtainTokensDeps {
  readonly config: Pick<BrokerConfig, 'provider' | 'providerClient'>;
  readonly api: ProviderApi;
  readonly endpoints: ProviderEndpoints;
  readonly refreshTokens: RefreshTokens;
  readonly recentAnswers: RecentAnswers;
  readonly clients: Clients;
  /** What the gateway would say of an access token, its signature aside. */
  readonly inspectToken: (token: string) => TokenInspection;
  readonly noteClient: NoteClient;
  readonly logLogin: LogLogin;
}

export function createObtainTokens(deps: ObtainTokensDeps): ObtainTokens {
  const { config, api, endpoints, refreshTokens, recentAnswers, clients } = deps;
  const { inspectToken, noteClient, logLogin } = deps;

  return async function obtainTokens(request) {
    const { client, form, refresh, asked, grantId } = request;
    const url = await endpoints.findTokenUrl();
    const response = await api.post(authenticateClient(config.providerClient, { url, form }));
    failIfProviderClientRefused(response);
    if (response.status !== 200 || response.refusal !== undefined) {
      const { spentRefreshTokenError } = config.provider.quirks;
      const status = Math.max(response.status, 400);
      if (refresh?.isBound) await recentAnswers.endAfterRefusal(grantId, status);
      return forwardRefusal(response, refresh && spentRefreshTokenError);
    }
    const providerTokens = parseObject(response.body) ?? failUnusable('is not a JSON object');
    const { tokens, user } = await selectTokens(providerTokens, request);
    await Promise.all([
      bind(providerTokens.refresh_token, request),
      refresh && recordRefresh(refresh, tokens.refresh_token, request),
      clients.recordUse(client),
      noteClient(tokens.access_token, client.id),
      recentAnswers.keep({ asked, grantId, mark: refresh?.mark, used: refresh?.held, tokens }),
    ]);
    const facts = logLogin({
      clientId: client.id,
      clientName: request.clientName,
      user,
      isRefresh: refresh !== undefined,
    });
    return {
      status: 200,
      headers: { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' },
      body: JSON.stringify(tokens),
      facts,
    };
  };

  /** `next` is the refresh token that the client has from now on, where it gets one. */
  async function recordRefresh(
    { held, sent, isBound }: RefreshTokenUse,
    next: unknown,
    request: TokenRequest,
  ): Promise<void> {
    const replacement = typeof next === 'string' && next !== held ? next : undefined;
    const [isRevoked] = await Promise.all([
      refreshTokens.isRevoked(held),
      // One that was replaced keeps the time it has: its client goes on with the next one.
      replacement === undefined || !isBound ? bind(held, request) : undefined,
    ]);
    if (isRevoked) {
      // Somebody revoked it while the provider was asked: what came of it is nobody's, either.
      if (replacement !== undefined) await refreshTokens.revoke(replacement, true);
      fail('invalid_grant', { details: 'The refresh token has been revoked.' });
    }
    // Last, since the client's next try needs it if anything before fails.
    if (sent !== held) await refreshTokens.forgetSuccessor(held).catch(() => {});
  }

  /** What was gained must reach its asker: unbound, the token is adopted at its next use. */
  async function bind(token: unknown, { client, resources, grantId }: TokenRequest) {
    if (typeof token !== 'string') return;
    await refreshTokens.bind(token, { clientId: client.id, resources, grantId }).catch(() => {});
  }

  /** What the client gets, and for whom. @throws GatewayError when there is nothing that it could use. */
  async function selectTokens(providerTokens: ProviderTokenResponse, request: TokenRequest) {
    const latest = findLatestRefreshToken(providerTokens, request.refresh);
    try {
      checkNonce(providerTokens, request.nonce);
      const tokens = selectClientTokens(providerTokens, config.provider);
      const { sub: user, problem } = inspectToken(tokens.access_token);
      if (problem !== undefined) failUnacceptable(problem);
      return { tokens: latest === undefined ? tokens : { ...tokens, refresh_token: latest }, user };
    } catch (error) {
      // The provider may have used up the one that the client has: the next try is with the latest.
      const keepLatest = async ({ held }: RefreshTokenUse, token: string) =>
        refreshTokens.keepSuccessor(held, token).catch(() => {});
      await Promise.all([
        bind(providerTokens.refresh_token, request),
        request.refresh && latest !== undefined && keepLatest(request.refresh, latest),
      ]);
      throw error;
    }
  }
}

/** Undefined when the client has it already, or there is none. */
function findLatestRefreshToken(
  { refresh_token: issued }: ProviderTokenResponse,
  refresh: RefreshTokenUse | undefined,
): string | undefined {
  const latest = typeof issued === 'string' ? issued : refresh?.sent;
  return latest === refresh?.held ? undefined : latest;
}

/**
 * A client that gets a token which `/mcp` then refuses logs its user in again and again. By form and
 * claims alone: the token came from the provider itself, by TLS.
 */
function failUnacceptable(problem: GatewayError): never {
  fail('unusable_access_token', {
    details: `${MISCONFIGURED} The gateway would not accept the identity provider's access token. ${problem.message}`,
    ...(problem.failure.facts && { facts: problem.failure.facts }),
  });
}

/**
 * OpenID Connect Core §3.1.3.7: the ID token came from the provider's own endpoint, so its
 * signature need not be checked; its nonce binds it to the login.
 */
function checkNonce({ id_token: idToken }: ProviderTokenResponse, nonce: string | undefined): void {
  if (nonce === undefined || typeof idToken !== 'string') return;
  const claims = parseObject(Buffer.from(idToken.split('.')[1] ?? '', 'base64url'));
  if (claims?.nonce !== nonce) {
    fail('invalid_grant', { details: 'The ID token belongs to another login.' });
  }
}

const failUnusable = (problem: string): never =>
  fail('upstream_failed', {
    details: `The identity provider's answer ${problem}.`,
    cause: new Error(`the token endpoint's answer ${problem}`),
  });
