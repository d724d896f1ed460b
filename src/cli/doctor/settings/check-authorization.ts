// Whether the provider would let a user log in through the gateway: redirect URI, scopes, resource.
import { generateSecret } from '../../../core/ids.ts';
import {
  buildCallbackUrl,
  buildProviderRequest,
} from '../../../features/oauth/broker/redirect-to-provider.ts';
import {
  buildAuthorizationParameters,
  selectResources,
} from '../../../features/oauth/provider/provider-parameters.ts';
import { createCodeChallenge } from '../../../features/oauth/request/pkce.ts';
import { type Finding, failure, unknown } from '../finding.ts';
import { describeNetworkFailure } from '../network/describe-failure.ts';
import { askAuthorization } from '../provider/ask-authorization.ts';
import { judgeAuthorization } from '../provider/judge-authorization.ts';
import { isDiscovered } from './check-discovery.ts';
import type { ProviderAtHand, SettingsAtHand } from './settings-at-hand.ts';

export async function checkAuthorization(settings: SettingsAtHand): Promise<readonly Finding[]> {
  const { access, probe } = settings;
  if (access === undefined || !(await isDiscovered(access))) return [];
  const url = await buildRequest(settings, access);
  if (url === undefined) return [];
  try {
    return [judgeAuthorization(await askAuthorization(url, probe), url)];
  } catch (error) {
    const { text } = describeNetworkFailure(error, url);
    return [
      failure(
        'provider.reachable',
        `The provider's authorization endpoint cannot be reached. ${text}`,
        {
          setting: 'OAUTH_AUTHORIZATION_URL',
          remedy: 'remove it, so that the discovery document names the endpoint, or correct it.',
        },
      ),
    ];
  }
}

/** As the broker builds it. In proxy mode clients bring redirect URIs of their own. */
async function buildRequest(
  { config: { oauth, server }, serverUrls }: SettingsAtHand,
  { endpoints }: ProviderAtHand,
): Promise<string | undefined> {
  if (oauth.mode !== 'broker') return undefined;
  const parameters = { ...oauth, baseUrl: server.baseUrl, serverUrls };
  const { scope, authorization } = buildAuthorizationParameters(
    parameters,
    undefined,
    selectResources(parameters, []),
  );
  const authorizationUrl = await endpoints.findAuthorizationUrl().catch(() => undefined);
  if (authorizationUrl === undefined) return undefined;
  return buildProviderRequest(authorizationUrl, [
    ['client_id', oauth.providerClient.id],
    ['redirect_uri', buildCallbackUrl(server.baseUrl)],
    ['response_type', 'code'],
    ['scope', scope],
    ['state', generateSecret()],
    ['code_challenge', createCodeChallenge(generateSecret())],
    ['code_challenge_method', 'S256'],
    ['nonce', generateSecret()],
    ...authorization,
  ]);
}

/** What clients need the provider to know, where it is their redirect URI that it sees. */
export async function checkProxyRedirects({ config }: SettingsAtHand): Promise<readonly Finding[]> {
  if (config.oauth.mode === 'broker' || config.oauth.endpoints.authorizationUrl === undefined)
    return [];
  return [
    unknown(
      'provider.redirect-uri',
      'whether the provider knows the redirect URI of each client, as proxy mode needs it to.',
      {
        setting: 'OAUTH_MODE',
        remedy:
          'set OAUTH_MODE=broker: the provider then has to know one, <BASE_URL>/oauth/callback.',
      },
    ),
  ];
}
