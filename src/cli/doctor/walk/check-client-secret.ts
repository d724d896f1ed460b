// Whether the provider accepts the gateway's own client: the gateway passes a refresh token that it does not
// know on to the provider, with its client ID and secret, and the provider looks at those first.
import { generateSecret } from '../../../platform/ids.ts';
import { type Finding, failure, ok, unknown } from '../finding.ts';
import { isInconclusive } from '../provider/inconclusive.ts';
import { adviseOnLimit } from './read-limit.ts';
import { readError } from './register.ts';
import type { Walk } from './walk.ts';

const CHECK = 'provider.client-secret';

export async function checkClientSecret(walk: Walk): Promise<readonly Finding[]> {
  const [metadata, client, login] = await Promise.all([
    walk.readServerMetadata(),
    walk.findClient(),
    walk.logIn(),
  ]);
  const url = metadata.find(({ document }) => document !== undefined)?.document?.token_endpoint;
  if (typeof url !== 'string' || client === undefined) return [];
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
    return [
      unknown(
        CHECK,
        "whether the provider accepts the gateway's client: the gateway has received too many requests for tokens (429).",
        adviseOnLimit(answer, 'OAUTH_REFRESH'),
      ),
    ];
  const said = readError(answer);
  const providerHost = login?.kind === 'at-provider' ? new URL(login.url).hostname : '';
  if (/own client|invalid_client|unauthorized_client|access_denied/.test(said))
    return [
      failure(CHECK, "The provider does not accept the gateway's own client ID and secret.", {
        why: `The gateway says: ${said}`,
        setting: 'OAUTH_CLIENT_SECRET, OAUTH_CLIENT_ID, OAUTH_CLIENT_AUTH',
        remedy:
          "copy the secret's value from the provider once more, without quotation marks. If it is right, the provider wants it sent the other way: OAUTH_CLIENT_AUTH=post or basic.",
      }),
    ];
  if (answer.status === 400 && !isInconclusive(providerHost))
    return [ok(CHECK, "The provider accepts the gateway's own client ID and secret.")];
  if (answer.status === 400)
    return [
      unknown(
        CHECK,
        `whether ${providerHost} accepts the gateway's client secret: it may look at the token first.`,
      ),
    ];
  return [
    failure(
      'provider.token-endpoint',
      `The token endpoint of the provider cannot be used: ${said}.`,
      {
        remedy: "the gateway's log says why.",
      },
    ),
  ];
}
