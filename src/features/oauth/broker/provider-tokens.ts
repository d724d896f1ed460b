// Tokens from the provider, in the name of the one client that it knows.
import {
  PROVIDER_PROFILES,
  type ProviderSettings,
} from '../../../core/config/provider-profiles.ts';
import { fail } from '../../../core/errors/gateway-error.ts';
import { parseObject } from '../../../core/json.ts';
import { json, type Reply } from '../../../core/message.ts';
import type { ProviderEndpoints } from '../../../core/provider/provider-endpoints.ts';
import type { TokenInspection } from '../../auth/token-verifier.ts';
import type { Clients, KnownClient } from '../clients/clients.ts';
import { asService, type ProviderClientSettings } from '../provider/provider-client.ts';
import { handedOut, type TokenAnswer } from '../provider/provider-request.ts';
import type { TokenLog } from '../provider/token-log.ts';
import type { Upstream } from '../provider/upstream.ts';
import type { RefreshTokens } from './refresh-tokens.ts';
import { checkOwnCredentials, checkOwnRequest } from './refusals.ts';

export interface TokenRequest {
  readonly client: KnownClient;
  /** For the log. */
  readonly clientName: string | undefined;
  readonly form: readonly (readonly [string, string])[];
  /** What the ID token must repeat, where there is one. */
  readonly nonce: string | undefined;
  /** RFC 8707: what the tokens are asked for; a new refresh token inherits it. */
  readonly resources: readonly string[];
  /** Undefined when a code is redeemed. */
  readonly refresh: RefreshTokenUse | undefined;
}

/** `sent` is not `held` where the answer to an earlier refresh could not be handed out. */
export interface RefreshTokenUse {
  /** The refresh token that the client has. */
  readonly held: string;
  /** The one that the provider is sent. */
  readonly sent: string;
}

/** The reply for the client, as plain data; a refusal that it can act on goes on as it came. */
export type ProviderTokens = (request: TokenRequest) => Promise<Reply>;

export interface ProviderTokensDeps {
  readonly settings: ProviderClientSettings &
    Pick<ProviderSettings, 'oauthAccessToken' | 'oidcProvider'>;
  readonly upstream: Upstream;
  readonly endpoints: ProviderEndpoints;
  readonly refreshTokens: RefreshTokens;
  readonly clients: Clients;
  /** What the gateway would say of an access token, its signature aside. */
  readonly inspectToken: (token: string) => TokenInspection;
  readonly logTokens: TokenLog;
}

export function createProviderTokens(deps: ProviderTokensDeps): ProviderTokens {
  const { settings, upstream, endpoints, refreshTokens, clients, inspectToken, logTokens } = deps;

  return async function ask(request) {
    const { client, form, refresh } = request;
    const reply = await upstream({ url: await endpoints.token(), ...asService(settings, form) });
    checkOwnCredentials(reply);
    const body = Buffer.from(reply.body ?? '');
    if (reply.status !== 200) return refusal(reply, body, request);
    const answer = parseObject(body) ?? unusable('is no JSON object');
    await bind(answer.refresh_token, request);
    const given = await usable(answer, request);
    if (refresh) await noteUse(refresh, given.refresh_token, request);
    await clients.used(client);
    logTokens({
      clientId: client.client_id,
      clientName: request.clientName,
      accessToken: given.access_token,
      isRefresh: refresh !== undefined,
    });
    return json(200, given, { 'Cache-Control': 'no-store' });
  };

  /** `next` is the refresh token that the client has from now on, where it gets one. */
  async function noteUse({ held, sent }: RefreshTokenUse, next: unknown, request: TokenRequest) {
    const replacement = typeof next === 'string' && next !== held ? next : undefined;
    const { isRevoked, owner } = await refreshTokens.find(held);
    if (isRevoked) return refuseRevoked(replacement);
    // One that was replaced keeps the time it has: its client goes on with the next one.
    if (replacement === undefined || owner === undefined) await bind(held, request);
    if (sent !== held) await refreshTokens.forgetSuccessor(held).catch(() => {});
  }

  /** Somebody revoked it while the provider was asked: what came of it is nobody's, either. */
  async function refuseRevoked(replacement: string | undefined): Promise<never> {
    if (replacement !== undefined) await refreshTokens.revoke(replacement, true);
    return fail('invalid_grant', { details: 'The refresh token was revoked.' });
  }

  function refusal(reply: Reply, body: Buffer, { refresh }: TokenRequest): Reply {
    const answer = parseObject(body);
    const { spentRefreshTokenError } = PROVIDER_PROFILES[settings.oidcProvider];
    if (
      refresh &&
      spentRefreshTokenError !== undefined &&
      answer?.error === spentRefreshTokenError
    ) {
      // RFC 6749 §5.2: clients log in anew when they hear this, and only then.
      return { ...reply, body: JSON.stringify({ ...answer, error: 'invalid_grant' }) };
    }
    checkOwnRequest(reply, answer?.error);
    return { ...reply, body: body.toString('utf8') };
  }

  /** What was gained must reach its asker: unbound, the token is adopted at its next use. */
  async function bind(token: unknown, { client, resources }: TokenRequest) {
    if (typeof token !== 'string') return;
    await refreshTokens.bind(token, { clientId: client.client_id, resources }).catch(() => {});
  }

  /** What the client gets. @throws GatewayError when there is nothing that it could use. */
  async function usable(answer: TokenAnswer, request: TokenRequest): Promise<TokenAnswer> {
    const latest = latestRefreshToken(answer, request.refresh);
    try {
      checkNonce(answer, request.nonce);
      const given = handedOut(answer, settings);
      checkAccessToken(inspectToken(given.access_token));
      return latest === undefined ? given : { ...given, refresh_token: latest };
    } catch (error) {
      // The provider may have used up the one that the client has: the next try is with the latest.
      if (request.refresh && latest !== undefined) {
        await refreshTokens.keepSuccessor(request.refresh.held, latest).catch(() => {});
      }
      throw error;
    }
  }
}

/** Undefined when the client has it already, or there is none. */
function latestRefreshToken(
  { refresh_token: given }: TokenAnswer,
  refresh: RefreshTokenUse | undefined,
): string | undefined {
  const latest = typeof given === 'string' ? given : refresh?.sent;
  return latest === refresh?.held ? undefined : latest;
}

/**
 * A client that gets a token which `/mcp` then refuses logs its user in again and again. By form and
 * claims alone: the token came from the provider itself, by TLS.
 */
function checkAccessToken({ problem }: TokenInspection): void {
  if (problem === undefined) return;
  fail('unusable_access_token', {
    details: `The gateway is misconfigured; this is not the user's fault. The gateway would not accept the identity provider's access token. ${problem.message}`,
    ...(problem.failure.facts && { facts: problem.failure.facts }),
  });
}

/**
 * OpenID Connect Core §3.1.3.7: the ID token came from the provider's own endpoint, so its
 * signature need not be checked; its nonce binds it to the log-in.
 */
function checkNonce({ id_token: idToken }: TokenAnswer, nonce: string | undefined): void {
  if (nonce === undefined || typeof idToken !== 'string') return;
  const claims = parseObject(Buffer.from(idToken.split('.')[1] ?? '', 'base64url'));
  if (claims?.nonce !== nonce) {
    fail('invalid_grant', { details: 'The ID token belongs to another log-in.' });
  }
}

const unusable = (what: string): never =>
  fail('upstream_failed', {
    details: `The identity provider's answer ${what}.`,
    cause: new Error(`the token endpoint's answer ${what}`),
  });
