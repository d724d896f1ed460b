// --token: what the gateway would say of a user's access token.
import { GatewayError } from '../../../errors/gateway-error.ts';
import { describeCause } from '../../../platform/log.ts';
import { quote } from '../../../platform/text.ts';
import { type Finding, failure, ok, unknown } from '../finding.ts';
import { adviseOnToken } from '../token/advise.ts';
import { describeRefusal, describeToken, readTokenParts } from '../token/describe.ts';
import { judgeLifetime } from '../token/judge-lifetime.ts';
import { reportMissingToken } from '../token/missing.ts';
import { isDiscovered } from './check-discovery.ts';
import type { ProviderAtHand, SettingsAtHand } from './settings-at-hand.ts';

export async function checkToken(settings: SettingsAtHand): Promise<readonly Finding[]> {
  const { access, config, token, clock } = settings;
  if (access === undefined || !config.auth.required) return [];
  const hasKeys = await isDiscovered(access);
  if (token === undefined) return hasKeys ? [reportMissingToken(config.server.baseUrl)] : [];
  if (!hasKeys)
    return [unknown('token', "whether the token is accepted, without the provider's keys.")];
  try {
    await access.auth.authenticate({
      headers: { authorization: `Bearer ${token}` },
      path: '/mcp',
      clientIp: 'unknown',
    });
    return [
      ok('token', `The gateway would accept the token${describeToken(token, clock.now())}.`),
      ...judgeLifetime(token),
    ];
  } catch (error) {
    return [explainRefusal(error, token, access)];
  }
}

function explainRefusal(
  error: unknown,
  token: string,
  { provider, keySet }: ProviderAtHand,
): Finding {
  if (!(error instanceof GatewayError)) return failure('token', describeCause(error));
  const { name, audience } = provider;
  const { check, advice } = adviseOnToken({ reason: error.key, token, provider: name, audience });
  const what = describeRefusal('would refuse', token, error.message);
  const header = readTokenParts(token)?.header;
  const isUnknownKey =
    keySet.isFetched &&
    error.key === 'invalid_token' &&
    typeof header?.alg === 'string' &&
    typeof header.kid === 'string' &&
    keySet.find({ alg: header.alg, kid: header.kid }).every(({ kid }) => kid !== header.kid);
  if (isUnknownKey)
    return failure('token.key', what, {
      why: `The key set of the provider has no key ${quote(header?.kid)}: another provider, tenant or realm issued the token, or one of the provider's own services for itself.`,
      setting: 'OIDC_ISSUER, OIDC_JWKS_URL',
      remedy: 'get a token that this provider issued for the gateway.',
    });
  return failure(check ?? 'token', what, advice);
}
