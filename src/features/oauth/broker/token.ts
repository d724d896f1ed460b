// RFC 6749 §4.1.3, §6, RFC 7636 §4.6: the token endpoint of broker mode.
import { fail, GatewayError } from '../../../core/errors/gateway-error.ts';
import type { PendingReply, RequestBody } from '../../../core/message.ts';
import type { Clients } from '../clients/clients.ts';
import type { ProviderApi } from '../provider/provider-api.ts';
import {
  authorizationExtras,
  type ProviderRequestConfig,
  refreshExtras,
  resourcesToRequest,
} from '../provider/provider-request.ts';
import { fromBody, type Parameters } from '../request/parameters.ts';
import { verifyPkce } from '../request/pkce.ts';
import { checkResources } from '../request/resources.ts';
import type { SealedRecords } from '../sealed-records.ts';
import type { Grant } from './callback.ts';
import { callbackUrl } from './login.ts';
import type { ObtainTokens, TokenResponse } from './obtain-tokens.ts';
import type { RefreshTokens } from './refresh-tokens.ts';
import type { SingleFlight } from './single-flight.ts';

export interface BrokerTokenDeps {
  readonly config: ProviderRequestConfig;
  readonly clients: Clients;
  readonly api: ProviderApi;
  readonly grants: SealedRecords<Grant>;
  readonly refreshTokens: RefreshTokens;
  readonly runOnce: SingleFlight<TokenResponse>;
  readonly obtainTokens: ObtainTokens;
}

export const createBrokerToken = (deps: BrokerTokenDeps) =>
  async function token(body: RequestBody): Promise<PendingReply> {
    const parameters = fromBody(body);
    const grantType = parameters.require('grant_type');
    if (grantType === 'authorization_code') return redeemCode(parameters, deps);
    if (grantType === 'refresh_token') return refresh(parameters, deps);
    return fail('unsupported_grant_type');
  };

async function redeemCode(parameters: Parameters, deps: BrokerTokenDeps): Promise<PendingReply> {
  const code = parameters.require('code');
  const redirectUri = parameters.require('redirect_uri');
  const clientId = parameters.require('client_id');
  const verifier = parameters.require('code_verifier');
  const client = await deps.clients.identify(clientId);
  return async function redeem() {
    // Before the code is used up: its client may come again with it.
    deps.api.requireCapacity();
    const grant = await deps.grants.take(code);
    if (grant === undefined) refuse('The code is unknown, has expired, or was used before.');
    if (grant.clientId !== clientId) refuse('The code was issued to another client.');
    if (grant.redirectUri !== redirectUri) refuse('The redirect_uri is not that of the log-in.');
    if (!verifyPkce(grant.codeChallenge, verifier)) refuse('The code_verifier is not right.');
    return deps.obtainTokens({
      client,
      clientName: grant.clientName,
      nonce: grant.nonce,
      resources: grant.resources,
      refresh: undefined,
      form: [
        ['grant_type', 'authorization_code'],
        ['code', grant.code],
        ['redirect_uri', callbackUrl(deps.config.baseUrl)],
        ['code_verifier', grant.codeVerifier],
        ...authorizationExtras(deps.config, undefined, grant.resources).token,
      ],
    });
  };
}

async function refresh(parameters: Parameters, deps: BrokerTokenDeps): Promise<PendingReply> {
  const { config, refreshTokens } = deps;
  const refreshToken = parameters.require('refresh_token');
  const clientId = parameters.require('client_id');
  const [known, client] = await Promise.all([
    refreshTokens.find(refreshToken),
    deps.clients.identify(clientId),
  ]);
  if (known.isRevoked) refuse('The refresh token was revoked.');
  if (known.owner !== undefined && known.owner !== clientId) {
    refuse('The refresh token was issued to another client.');
  }
  const requested = checkResources(parameters, config.baseUrl);

  async function ask(resources: readonly string[]): Promise<TokenResponse> {
    const sent = (await refreshTokens.successorOf(refreshToken)) ?? refreshToken;
    return deps.obtainTokens({
      client,
      clientName: client.name,
      nonce: undefined,
      resources,
      refresh: { held: refreshToken, sent, isBound: known.owner !== undefined },
      form: [
        ['grant_type', 'refresh_token'],
        ['refresh_token', sent],
        ...refreshExtras(config, parameters.get('scope'), resources),
      ],
    });
  }

  /** For what the grant was made for, as far as it is known. */
  async function askAsGranted(): Promise<TokenResponse> {
    if (known.resources) return ask(known.resources);
    const usual = resourcesToRequest(config, requested);
    if (requested.length === 0 || usual.length === 0) return ask(usual);
    // A client that names this service did so when the grant was made, but perhaps by another of its
    // names. Providers refuse a second name, and some use up the token over it; without a name they
    // go by the grant. What comes of that is handed out only when it is for this service.
    return ask([]).catch((error: unknown) => {
      if (error instanceof GatewayError && error.key === 'unusable_access_token') return ask(usual);
      throw error;
    });
  }

  // A provider that rotates refresh tokens takes a second use for theft, and logs the user out:
  // whatever else two requests ask for, the token is used once.
  return () => deps.runOnce(JSON.stringify([clientId, refreshToken]), askAsGranted, isFinal);
}

/** Tokens, or the provider's word that there will be none. */
const isFinal = ({ status }: TokenResponse): boolean => status === 200 || status === 400;

function refuse(details: string): never {
  return fail('invalid_grant', { details });
}
