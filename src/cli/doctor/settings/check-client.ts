// Whether the provider accepts OAUTH_CLIENT_ID and OAUTH_CLIENT_SECRET: the gateway's own request with a
// made-up code. A provider looks at the client first, and complains of the code only where it accepts that.
import type { ProviderClientConfig } from '../../../config/groups/provider-client.ts';
import { GatewayError } from '../../../errors/gateway-error.ts';
import {
  authenticateClient,
  createProviderApi,
  type ProviderRefusal,
} from '../../../oauth/provider/provider-api.ts';
import { buildCallbackUrl } from '../../../oauth/provider/provider-parameters.ts';
import { generateSecret } from '../../../platform/ids.ts';
import { type Finding, failure, ok, unknown, warning } from '../finding.ts';
import { describeNetworkFailure } from '../network/describe-failure.ts';
import { isInconclusive } from '../provider/inconclusive.ts';
import { isDiscovered } from './check-discovery.ts';
import type { SettingsAtHand } from './settings-at-hand.ts';

const CHECK = 'provider.client-secret';

type Form = readonly (readonly [name: string, value: string])[];

export async function checkClient(settings: SettingsAtHand): Promise<readonly Finding[]> {
  const { access, config } = settings;
  if (access === undefined || !(await isDiscovered(access))) return [];
  const { providerClient } = config.oauth;
  if (providerClient.id === undefined) return [];
  const url = await access.endpoints.findTokenUrl().catch(() => undefined);
  if (url === undefined) return [];
  try {
    return [await judgeClient(settings, providerClient, url)];
  } catch (error) {
    const { text } = describeNetworkFailure(
      error instanceof GatewayError ? error.cause : error,
      url,
    );
    return [
      failure(
        'provider.token-endpoint',
        `The provider's token endpoint cannot be reached. ${text}`,
        {
          setting: 'OAUTH_TOKEN_URL',
          remedy: 'remove it, so that the discovery document names the endpoint, or correct it.',
        },
      ),
    ];
  }
}

async function judgeClient(
  settings: SettingsAtHand,
  client: ProviderClientConfig,
  url: string,
): Promise<Finding> {
  const form = buildForm(settings);
  const refusal = await ask(settings, client, url, form);
  if (refusal === undefined || !isRefused(refusal))
    return judgeAcceptance(client, url, form, refusal);
  const why = refusal.message;
  const other = { ...client, authMethod: client.authMethod === 'post' ? 'basic' : 'post' } as const;
  if (client.secret !== undefined && !isRefused(await ask(settings, other, url, form)))
    return failure(CHECK, 'The provider wants the client secret sent in another way.', {
      why,
      setting: 'OAUTH_CLIENT_AUTH',
      remedy: `set OAUTH_CLIENT_AUTH=${other.authMethod}. With it, the provider accepted the secret just now.`,
    });
  return failure(CHECK, "The provider does not accept the gateway's client ID and secret.", {
    why,
    setting: 'OAUTH_CLIENT_SECRET, OAUTH_CLIENT_ID',
    remedy: adviseOnSecret(client),
  });
}

/**
 * Entra looks at the code before the secret, as far as is known. There the gateway's client asks for a token of
 * its own, for its API; what comes is thrown away.
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

/** Undefined where the provider refused nothing. */
async function ask(
  { clocks }: SettingsAtHand,
  client: ProviderClientConfig,
  url: string,
  form: Form,
): Promise<(ProviderRefusal & { readonly status: number }) | undefined> {
  const { status, refusal } = await createProviderApi(clocks.fetch).post(
    authenticateClient(client, { url, form }),
  );
  return refusal && { ...refusal, status };
}

type Asked = Awaited<ReturnType<typeof ask>>;

/** RFC 6749 §5.2; some, such as Auth0, have another word with the 401. */
const isRefused = (refusal: Asked): boolean =>
  refusal?.isProviderClientRefused === true || refusal?.status === 401;

function judgeAcceptance(
  { id, secret }: ProviderClientConfig,
  url: string,
  form: Form,
  refusal: Asked,
): Finding {
  const status = refusal?.status ?? 200;
  if (status === 429 || status >= 500)
    return failure('provider.token-endpoint', `The provider's token endpoint answers ${status}.`, {
      ...(refusal && { why: refusal.message }),
      remedy: "look into the provider's log.",
    });
  if (status === 404)
    return failure('provider.token-endpoint', `There is no token endpoint at ${url} (404).`, {
      setting: 'OAUTH_TOKEN_URL',
      remedy: 'remove it, so that the discovery document names the endpoint, or correct it.',
    });
  const isAboutCode = form.some(([name]) => name === 'code');
  if (isAboutCode && isInconclusive(new URL(url).hostname))
    return unknown(
      CHECK,
      'whether the provider accepts the client secret: it may look at the code first.',
      {
        ...(refusal && { why: refusal.message }),
        remedy: 'log in once: if the secret is wrong, the log of the gateway says it then.',
      },
    );
  return secret === undefined
    ? warning(
        CHECK,
        `The provider accepts the client ${id} without a secret: it is a public client.`,
        {
          why: 'It works. With a secret nobody else can redeem the codes of your users.',
          setting: 'OAUTH_CLIENT_SECRET',
          remedy: 'make the client confidential at the provider, and set its secret.',
        },
      )
    : ok(CHECK, `The provider accepts the client ${id} and its secret.`);
}

function adviseOnSecret({ secret }: ProviderClientConfig): string {
  if (secret === undefined) return 'the client needs a secret: set OAUTH_CLIENT_SECRET to it.';
  if (/^["']|["']$/.test(secret))
    return 'the secret begins or ends with a quotation mark, which some tools take as a part of the value: remove it.';
  if (/^\s|\s$/.test(secret)) return 'the secret begins or ends with a space: remove it.';
  return "copy the client ID and the secret's value (not the ID of the secret) from the provider once more. It may also have expired.";
}
