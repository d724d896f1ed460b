// Tokens from the provider, in the name of the one client that it knows.
import type { ProviderSettings } from '../../../core/config/provider-profiles.ts';
import { fail } from '../../../core/errors/gateway-error.ts';
import { parseObject } from '../../../core/json.ts';
import { json, type Reply } from '../../../core/message.ts';
import type { Clients, KnownClient } from '../clients.ts';
import { asService, type ProviderClientSettings } from '../provider-client.ts';
import { handedOut, type TokenAnswer } from '../provider-request.ts';
import type { Upstream } from '../upstream.ts';
import type { ProviderEndpoints } from './provider-endpoints.ts';
import type { RefreshBindings } from './refresh-bindings.ts';

export interface TokenRequest {
  readonly client: KnownClient;
  readonly form: readonly (readonly [string, string])[];
  /** What the ID token must repeat, where there is one. */
  readonly nonce: string | undefined;
}

/** The reply for the client, as plain data; a refusal of the provider goes on as it came. */
export type ProviderTokens = (request: TokenRequest) => Promise<Reply>;

export interface ProviderTokensDeps {
  readonly settings: ProviderClientSettings & Pick<ProviderSettings, 'oauthAccessToken'>;
  readonly upstream: Upstream;
  readonly endpoints: ProviderEndpoints;
  readonly bindings: RefreshBindings;
  readonly clients: Clients;
}

export function createProviderTokens(deps: ProviderTokensDeps): ProviderTokens {
  const { settings, upstream, endpoints, bindings, clients } = deps;

  return async function ask({ client, form, nonce }) {
    const reply = await upstream({ url: await endpoints.token(), ...asService(settings, form) });
    const body = Buffer.from(reply.body ?? '');
    if (reply.status !== 200) return { ...reply, body: body.toString('utf8') };
    const answer = parseObject(body) ?? unusable('is no JSON object');
    checkNonce(answer, nonce);
    const given = handedOut(answer, settings);
    const { refresh_token: refreshToken } = given;
    if (typeof refreshToken === 'string') {
      // What was gained must reach its asker: unbound, the token is adopted at its next use.
      await bindings.bind(refreshToken, client.client_id).catch(() => {});
    }
    await clients.used(client);
    return json(200, given, { 'Cache-Control': 'no-store' });
  };
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
