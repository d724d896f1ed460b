// Checks the gateway's client at the provider (OAUTH_CLIENT_ID and OAUTH_CLIENT_SECRET). Providers authenticate the client first,
// and reject the rest of a request only if the client is valid.
import type { ProviderClientConfig } from '../../config/groups/provider.ts';

import { catalogue } from '../../errors/catalogue.ts';
import { GatewayError } from '../../errors/gateway-error.ts';
import { authenticateClient, createProviderApi } from '../../http/oauth-client/provider-api.ts';
import { buildCallbackUrl } from '../../logins/broker/login.ts';
import { generateSecret } from '../../platform/ids.ts';
import {
  type Advice,
  defineCheck,
  failure,
  LOGIN_NEEDS_STORE,
  ok,
  unknown,
  warning,
} from './finding.ts';
import { describeNetworkFailure } from './instruments.ts';
import { adviseOnLimit, readError } from './log-in.ts';
import { defineProviderCheck, type SettingsAtHand } from './settings-at-hand.ts';
import type { Walk } from './walk.ts';

const CHECK = 'provider.client-secret';
const ENDPOINT_CHECK = 'provider.token-endpoint';

const CORRECT_URL: Advice = {
  setting: 'OAUTH_TOKEN_URL',
  remedy: 'remove it, so that the discovery document names the endpoint, or correct it.',
};

type Form = readonly (readonly [name: string, value: string])[];

/** The gateway's own request, with a fake code. */
export const clientCheck = defineProviderCheck(
  "The gateway's client at the provider",
  async (settings, access) => {
    const { providerClient } = settings.config.oauth;
    if (providerClient.id === undefined) return [];
    const url = await access.endpoints.findTokenUrl().catch(() => undefined);
    if (url === undefined) return [];
    try {
      const form = buildForm(settings);
      const refusal = await ask(settings, providerClient, url, form);
      if (refusal === undefined || !isRefused(refusal))
        return judgeAcceptance(providerClient, url, form, refusal);
      const why = refusal.message;
      const other = {
        ...providerClient,
        authMethod: providerClient.authMethod === 'post' ? 'basic' : 'post',
      } as const;
      if (providerClient.secret !== undefined && !isRefused(await ask(settings, other, url, form)))
        return failure(CHECK, 'The provider expects the client secret to be sent another way.', {
          why,
          setting: 'OAUTH_CLIENT_AUTH',
          remedy: `set OAUTH_CLIENT_AUTH=${other.authMethod}. With it, the provider accepted the secret just now.`,
        });
      return failure(CHECK, "The provider does not accept the gateway's client ID and secret.", {
        why,
        setting: 'OAUTH_CLIENT_SECRET, OAUTH_CLIENT_ID',
        remedy: adviseOnSecret(providerClient),
      });
    } catch (error) {
      const cause = error instanceof GatewayError ? error.cause : error;
      return failure(
        ENDPOINT_CHECK,
        `The provider's token endpoint cannot be reached. ${describeNetworkFailure(cause, url).text}`,
        CORRECT_URL,
      );
    }
  },
);

/**
 * Entra apparently validates the code before the secret. So the gateway's client requests a token for its own API there; the
 * token is discarded.
 */
function buildForm({ config: { oauth, server } }: SettingsAtHand): Form {
  const apiScope =
    oauth.mode === 'broker' && oauth.provider.name === 'entra'
      ? oauth.addedScopes.find((scope) => scope.includes('/'))
      : undefined;
  return apiScope === undefined
    ? [
        ['grant_type', 'authorization_code'],
        ['code', `postern-doctor-${generateSecret()}`],
        ['redirect_uri', buildCallbackUrl(server.baseUrl)],
        ['code_verifier', generateSecret()],
      ]
    : [
        ['grant_type', 'client_credentials'],
        ['scope', apiScope.replace(/[^/]*$/, '.default')],
      ];
}

/** Undefined if the provider rejected nothing. */
async function ask(
  { clocks, config: { oauth } }: SettingsAtHand,
  client: ProviderClientConfig,
  url: string,
  form: Form,
) {
  const { status, refusal } = await createProviderApi(
    clocks.fetch,
    oauth.provider?.quirks.errorCodes,
  ).post(authenticateClient(client, { url, form }));
  return refusal && { ...refusal, status };
}

type Asked = Awaited<ReturnType<typeof ask>>;

/** RFC 6749 §5.2; some providers, such as Auth0, send another code with the 401. */
const isRefused = (refusal: Asked) =>
  refusal?.isProviderClientRefused === true || refusal?.status === 401;

function judgeAcceptance(
  { id, secret }: ProviderClientConfig,
  url: string,
  form: Form,
  refusal: Asked,
) {
  const status = refusal?.status ?? 200;
  if (status === 429 || status >= 500)
    return failure(ENDPOINT_CHECK, `The provider's token endpoint answers ${status}.`, {
      why: refusal?.message,
      remedy: "check the provider's log.",
    });
  if (status === 404)
    return failure(ENDPOINT_CHECK, `There is no token endpoint at ${url} (404).`, CORRECT_URL);
  const isAboutCode = form.some(([name]) => name === 'code');
  if (isAboutCode && INCONCLUSIVE_HOSTS.test(new URL(url).hostname))
    return unknown(
      CHECK,
      'whether the provider accepts the client secret: it may look at the code first.',
      {
        why: refusal?.message,
        remedy: 'log in once: if the secret is wrong, the gateway log then says so.',
      },
    );
  return secret === undefined
    ? warning(
        CHECK,
        `The provider accepts the client ${id} without a secret: it is a public client.`,
        {
          why: 'This works. With a secret, no other party can redeem the codes of your users.',
          setting: 'OAUTH_CLIENT_SECRET',
          remedy: 'make the client confidential at the provider, and set its secret.',
        },
      )
    : ok(CHECK, `The provider accepts the client ${id} and its secret.`);
}

function adviseOnSecret({ secret }: ProviderClientConfig) {
  if (secret === undefined) return 'the client needs a secret: set OAUTH_CLIENT_SECRET to it.';
  if (/^["']|["']$/.test(secret))
    return 'the secret begins or ends with a quotation mark, which some tools take as a part of the value: remove it.';
  if (/^\s|\s$/.test(secret)) return 'the secret begins or ends with a space: remove it.';
  return "copy the client ID and the secret's value (not the ID of the secret) from the provider once more. It may also have expired.";
}

/** Hosts that may validate a code or a refresh token before the secret. */
const INCONCLUSIVE_HOSTS =
  /(^|\.)(microsoftonline\.(com|us|cn)|ciamlogin\.com|accounts\.google\.com|googleapis\.com)$/;

/** The gateway forwards an unknown refresh token to the provider, with its own client ID and secret. */
export const clientSecretCheck = defineCheck({
  section: 'Login',
  needsStore: LOGIN_NEEDS_STORE,
  async run(walk: Walk) {
    const [metadata, client, login] = await Promise.all([
      walk.readServerDocument(),
      walk.findClient(),
      walk.logIn(),
    ]);
    const url = metadata?.token_endpoint;
    if (typeof url !== 'string' || client === undefined) return [];
    // A replica that does not know doctor's client rejects that one, which says nothing about the gateway's own client.
    if (login?.kind === 'client-forgotten') return [];
    if (await walk.issuesOwnTokens())
      return unknown(
        CHECK,
        "whether the provider accepts the gateway's client ID and secret: when it issues its own tokens, the gateway contacts the provider only when a user logs in.",
        {
          remedy:
            'run postern doctor without a URL where the settings of the gateway are, or log in once: if the secret is wrong, the client and the log then say so.',
        },
      );
    const answer = await walk.probe(url, {
      method: 'POST',
      headers: { 'Content-Type': 'application/x-www-form-urlencoded', Accept: 'application/json' },
      body: new URLSearchParams({
        grant_type: 'refresh_token',
        refresh_token: `postern-doctor-${generateSecret()}`,
        client_id: client.clientId,
      }).toString(),
    });
    if (answer.status === 429)
      return unknown(
        CHECK,
        "whether the provider accepts the gateway's client: the gateway has received too many requests for tokens (429).",
        adviseOnLimit(answer, 'OAUTH_REFRESH'),
      );
    const said = readError(answer);
    const providerHost = login?.kind === 'at-provider' ? new URL(login.url).hostname : '';
    const isRefusedHere = said.includes(catalogue.gateway_refused_by_provider.details);
    if (isRefusedHere || /invalid_client|unauthorized_client|access_denied/.test(said))
      return failure(
        CHECK,
        "The provider does not accept the gateway's own client ID and secret.",
        {
          why: `The gateway says: ${said}`,
          setting: 'OAUTH_CLIENT_SECRET, OAUTH_CLIENT_ID, OAUTH_CLIENT_AUTH',
          remedy:
            "copy the secret's value from the provider once more, without quotation marks. If it is right, the provider expects it to be sent the other way: OAUTH_CLIENT_AUTH=post or basic.",
        },
      );
    if (answer.status === 400 && !INCONCLUSIVE_HOSTS.test(providerHost))
      return ok(CHECK, "The provider accepts the gateway's own client ID and secret.");
    if (answer.status === 400)
      return unknown(
        CHECK,
        `whether ${providerHost} accepts the gateway's client secret: it may look at the token first.`,
      );
    return failure(ENDPOINT_CHECK, `The token endpoint of the provider cannot be used: ${said}.`, {
      remedy: "see the gateway's log.",
    });
  },
});
