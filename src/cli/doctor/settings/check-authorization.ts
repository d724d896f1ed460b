// Whether the provider would let a user log in through the gateway: redirect URI and scopes.
import {
  askForLogin,
  buildLoginRequest,
  buildProviderRequest,
} from '../../../logins/broker/login.ts';
import { createCodeChallenge } from '../../../logins/provider/provider-parameters.ts';
import { generateSecret } from '../../../platform/ids.ts';
import { findUnknownRedirectUris } from '../clients/known-clients.ts';
import { type Found, ok, warning } from '../finding.ts';
import {
  askAuthorization,
  checkAuthorizationRequest,
  judgeAuthorization,
} from '../provider/authorization-request.ts';
import { LOOPBACK_REDIRECT_URI } from '../walk/log-in.ts';
import { isDiscovered } from './check-discovery.ts';
import type { ProviderAtHand, SettingsAtHand } from './settings-at-hand.ts';

export async function checkAuthorization(settings: SettingsAtHand): Promise<Found> {
  const { access, probe } = settings;
  if (access === undefined || !(await isDiscovered(access))) return [];
  const url = await buildRequest(settings, access);
  if (url === undefined) return [];
  return checkAuthorizationRequest(url, probe, {
    what: "The provider's authorization endpoint cannot be reached.",
    setting: 'OAUTH_AUTHORIZATION_URL',
    remedy: 'remove it, so that the discovery document names the endpoint, or correct it.',
  });
}

/** As the broker builds it. In proxy mode clients bring redirect URIs of their own. */
async function buildRequest(
  { config: { oauth, server } }: SettingsAtHand,
  { endpoints }: ProviderAtHand,
): Promise<string | undefined> {
  if (oauth.mode !== 'broker') return undefined;
  const { scope, authorization } = await askForLogin(oauth, endpoints, undefined);
  const authorizationUrl = await endpoints.findAuthorizationUrl().catch(() => undefined);
  if (authorizationUrl === undefined) return undefined;
  const login = {
    baseUrl: server.baseUrl,
    clientId: oauth.providerClient.id,
    scope,
    state: generateSecret(),
    codeVerifier: generateSecret(),
    nonce: generateSecret(),
  };
  return buildLoginRequest(authorizationUrl, login, authorization);
}

/** In proxy mode clients bring redirect URIs of their own, which the provider has to know. */
export async function checkProxyRedirects(settings: SettingsAtHand): Promise<Found> {
  const url = buildProxyRequest(settings);
  if (url === undefined) return [];
  const outcome = await askAuthorization(url, settings.probe);
  if (outcome.kind !== 'accepted' && outcome.kind !== 'redirect-uri-unknown')
    return judgeAuthorization(outcome, url);
  const unknownUris = await findClientsOwnRedirects(settings);
  return unknownUris.size === 0
    ? ok('provider.redirect-uri', 'The provider knows the redirect URIs of all known clients.')
    : warning('provider.redirect-uri', {
        what: `The provider does not know the redirect URIs ${[...unknownUris].join(', ')}.`,
        why: 'In proxy mode it has to know those of every client that your users have.',
        setting: 'OAUTH_MODE',
        remedy:
          'set OAUTH_MODE=broker: the provider then has to know one, <BASE_URL>/oauth/callback. Or register those that your users need.',
      });
}

/** Those that the provider does not know; none where it sees the gateway's only. */
export async function findClientsOwnRedirects(
  settings: SettingsAtHand,
): Promise<ReadonlySet<string>> {
  const url = buildProxyRequest(settings);
  const { baseUrl } = settings.config.server;
  return url === undefined
    ? new Set()
    : findUnknownRedirectUris(url, { baseUrl, probe: settings.probe });
}

/** As a client that the gateway passes on; undefined where none is. */
function buildProxyRequest({ config: { oauth } }: SettingsAtHand): string | undefined {
  const { authorizationUrl } = oauth.endpoints;
  const { id } = oauth.providerClient;
  if (oauth.mode === 'broker' || authorizationUrl === undefined || id === undefined)
    return undefined;
  return buildProviderRequest(authorizationUrl, [
    ['client_id', id],
    ['redirect_uri', LOOPBACK_REDIRECT_URI],
    ['response_type', 'code'],
    ['scope', 'openid'],
    ['state', generateSecret()],
    ['code_challenge', createCodeChallenge(generateSecret())],
    ['code_challenge_method', 'S256'],
  ]);
}
