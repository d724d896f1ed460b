// RFC 6749 §4.1.3, §6: the token endpoint of broker mode.

import type { PendingReply, RequestBody } from '../../endpoint/message.ts';
import { fail, GatewayError } from '../../errors/gateway-error.ts';
import { generateSecret } from '../../platform/ids.ts';
import type { SealedRecords } from '../../store/seal/sealed-records.ts';
import type { Clients } from '../clients/clients.ts';
import type { LogLogin } from '../provider/issued-tokens.ts';
import type { ProviderApi } from '../provider/provider-api.ts';
import {
  buildAuthorizationParameters,
  buildCallbackUrl,
  buildRefreshParameters,
  type ProviderParametersConfig,
  selectResources,
} from '../provider/provider-parameters.ts';
import type { RecentAnswers } from '../refresh/recent-answers.ts';
import {
  parseBody,
  type RequestParameters,
  readAskedTokens,
  readResourceIndicators,
} from '../request/parameters.ts';
import type { AuthorizationCode } from './callback.ts';
import { checkCode, failUnknownCode, readCodeRequest } from './code.ts';
import type { ObtainTokens, TokenResponse } from './obtain-tokens.ts';
import type { RefreshTokens } from './refresh-tokens.ts';
import type { RunOnce } from './run-once.ts';

export interface BrokerTokenDeps {
  readonly config: ProviderParametersConfig;
  readonly clients: Clients;
  readonly api: ProviderApi;
  readonly codes: SealedRecords<AuthorizationCode>;
  readonly refreshTokens: RefreshTokens;
  readonly recentAnswers: RecentAnswers;
  readonly runOnce: RunOnce<TokenResponse>;
  readonly obtainTokens: ObtainTokens;
  readonly logLogin: LogLogin;
}

export const createBrokerToken = (deps: BrokerTokenDeps) =>
  async function token(body: RequestBody): Promise<PendingReply> {
    const parameters = parseBody(body);
    const grantType = parameters.require('grant_type');
    if (grantType === 'authorization_code') return redeemCode(parameters, deps);
    if (grantType === 'refresh_token') return refresh(parameters, deps);
    return fail('unsupported_grant_type');
  };

async function redeemCode(
  parameters: RequestParameters,
  deps: BrokerTokenDeps,
): Promise<PendingReply> {
  const request = readCodeRequest(parameters);
  const { clientId } = request;
  const looking = deps.codes.get(request.code);
  // What is wrong with the client is said first.
  looking.catch(() => {});
  const client = await deps.clients.requireWithoutFetch(clientId);
  if ((await looking) === undefined) failUnknownCode();
  return async function redeem() {
    // Before the code is used up: its client may come again with it.
    deps.api.requireCapacity();
    const issued = checkCode(await deps.codes.take(request.code), request);
    return deps.obtainTokens({
      client,
      clientName: issued.clientName,
      nonce: issued.nonce,
      resources: issued.resources,
      grantId: generateSecret(),
      asked: readAskedTokens(parameters, clientId),
      refresh: undefined,
      form: [
        ['grant_type', 'authorization_code'],
        ['code', issued.code],
        ['redirect_uri', buildCallbackUrl(deps.config.baseUrl)],
        ['code_verifier', issued.codeVerifier],
        ...buildAuthorizationParameters(deps.config, undefined, issued.resources).token,
      ],
    });
  };
}

async function refresh(
  parameters: RequestParameters,
  deps: BrokerTokenDeps,
): Promise<PendingReply> {
  const { config, refreshTokens, recentAnswers } = deps;
  const refreshToken = parameters.require('refresh_token');
  const clientId = parameters.require('client_id');
  const [known, kept, client] = await Promise.all([
    refreshTokens.find(refreshToken),
    recentAnswers.find(refreshToken, clientId),
    deps.clients.requireWithoutFetch(clientId),
  ]);
  if (known.isRevoked) failGrant('The refresh token has been revoked.');
  if (known.owner !== undefined && known.owner !== clientId) {
    failGrant('The refresh token was issued to another client.');
  }
  // What the gateway's own pages got is known: whoever brings another wants what a token of theirs may do.
  if (known.owner === undefined && client.kind === 'own') {
    failGrant('The refresh token was not issued to this client.');
  }
  const requested = readResourceIndicators(parameters, config);
  const asked = readAskedTokens(parameters, clientId);

  async function refreshFor(resources: readonly string[]): Promise<TokenResponse> {
    const grantId = known.grantId ?? generateSecret();
    const [successor, mark] = await Promise.all([
      refreshTokens.findSuccessor(refreshToken),
      recentAnswers.readMark(grantId),
    ]);
    const sent = successor ?? refreshToken;
    return deps.obtainTokens({
      client,
      clientName: client.name,
      nonce: undefined,
      resources,
      grantId,
      asked,
      refresh: { held: refreshToken, sent, mark, isBound: known.owner !== undefined },
      form: [
        ['grant_type', 'refresh_token'],
        ['refresh_token', sent],
        ...buildRefreshParameters(config, parameters.get('scope'), resources),
      ],
    });
  }

  /** For what the grant was made for, as far as it is known. */
  async function refreshAsGranted(): Promise<TokenResponse> {
    if (known.resources) return refreshFor(known.resources);
    const selected = selectResources(config, requested);
    if (requested.length === 0 || selected.length === 0) return refreshFor(selected);
    // A client that names this service did so when the grant was made, but perhaps by another of its
    // names. Providers refuse a second name, and some use up the token over it; without a name they
    // go by the grant. What comes of that is handed out only when it is for this service.
    return refreshFor([]).catch((error: unknown) => {
      if (error instanceof GatewayError && error.key === 'unusable_access_token')
        return refreshFor(selected);
      throw error;
    });
  }

  // A provider that rotates refresh tokens takes a second use for theft, and logs the user out:
  // whatever else two requests ask for, the token is used once.
  const refreshOnce = () =>
    deps.runOnce(JSON.stringify([clientId, refreshToken]), refreshAsGranted, isFinal);

  return async function refreshOrRecall() {
    // A token that the provider gave in proxy mode is nobody's yet: its first refresh here binds it.
    if (known.owner === undefined || kept === undefined) return refreshOnce();
    const recalled = await recentAnswers.recall(kept, asked);
    if (recalled === undefined) return refreshOnce();
    const issued = { clientId, clientName: client.name, user: recalled.user };
    const facts = deps.logLogin({ ...issued, isRefresh: true, isLastAnswer: true });
    return { ...recalled.reply, facts };
  };
}

/** Tokens, or the provider's word that there will be none. */
const isFinal = ({ status }: TokenResponse): boolean => status === 200 || status === 400;

function failGrant(details: string): never {
  return fail('invalid_grant', { details });
}
