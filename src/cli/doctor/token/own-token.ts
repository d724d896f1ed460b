// --token, where clients get tokens of the gateway's own (§5.11): what one says to those who have the secret, and what to
// do about one that is refused. The token itself is never printed.

import type { BrokerConfig } from '../../../config/groups/oauth.ts';
import { inspectOwnToken } from '../../../logins/grants/token-codec.ts';
import { type Advice, type Finding, failure, ok, unknown } from '../finding.ts';
import type { SettingsAtHand } from '../settings/settings-at-hand.ts';

const CHECK = 'token';

/** By the settings at hand. Whether its login still stands, only the gateway knows. */
export function judgeOwnToken(
  token: string,
  { stateSecret }: Pick<BrokerConfig, 'stateSecret'>,
  { config: { server }, clock }: Pick<SettingsAtHand, 'config' | 'clock'>,
): Finding {
  const url = server.baseUrl;
  const secrets = stateSecret.kind === 'given' ? stateSecret.secrets : undefined;
  const found = inspectOwnToken(token, secrets, url);
  switch (found.kind) {
    case 'foreign':
      return refuseForeignToken();
    case 'refresh':
      return refuseRefreshToken();
    // Its file is the gateway's, which makes it at its first start.
    case 'sealed':
      return unknown(CHECK, {
        what: 'what this token of the gateway says: its secret is in DATA_DIR.',
        remedy: `give it to the gateway that runs: postern doctor ${url} --token-file FILE`,
      });
    case 'unknown':
      return failure('token.unknown', {
        what: 'No secret at hand made this token of a gateway.',
        ...UNKNOWN,
      });
    case 'access':
      return judgeAccessToken(found, url, clock.now() / 1000);
  }
}

function judgeAccessToken(
  { grantId, expiresAt }: { readonly grantId: string; readonly expiresAt: number },
  url: string,
  now: number,
): Finding {
  const what = `an access token of this gateway, of the login (grant) ${grantId}`;
  if (now >= expiresAt) {
    return failure('token.expired', {
      what: `This is ${what}, and has expired.`,
      remedy: 'have the client refresh, or log in again.',
    });
  }
  return ok(CHECK, {
    what: `This is ${what}, with ${Math.round((expiresAt - now) / 60)} min left.`,
    why: `Whether its login still stands, the gateway that runs says: postern doctor ${url} --token-file FILE`,
  });
}

const UNKNOWN: Advice = {
  why: 'It was changed on its way, or a gateway with another BASE_URL or another secret issued it.',
  setting: 'OAUTH_STATE_SECRET, BASE_URL',
  remedy:
    'copy it once more. If the secret was changed, its users log in again; to change it without that, list the old one, too.',
};

export const refuseForeignToken = (): Finding =>
  failure('token.not-own', {
    what: 'The token is none of the gateway, whose own begin with pst_.',
    why: "Clients get tokens of the gateway's own, and it accepts no others.",
    setting: 'OAUTH_ACCEPT_PROVIDER_TOKENS',
    remedy:
      'log in by way of the gateway, for example at /playground. For tokens that service accounts get at the provider itself, set OAUTH_ACCEPT_PROVIDER_TOKENS=true, and OIDC_AUDIENCE to what they name.',
  });

const refuseRefreshToken = (): Finding =>
  failure('token.refresh', {
    what: 'This is a refresh token of the gateway, not an access token.',
    remedy: 'give the access token, which begins with pst_.',
  });

/** By the `reason` (§7.1) for which a gateway that runs refused it. */
const REFUSALS: ReadonlyMap<string | undefined, Pick<Finding, 'check' | 'remedy'>> = new Map([
  [
    'token_revoked',
    {
      check: 'token.revoked',
      remedy:
        'log in again. The client, the user, an operator or the provider ended this login; the log of the gateway names the grant.',
    },
  ],
  [
    'expired_token',
    { check: 'token.expired', remedy: 'have the client refresh, or log in again.' },
  ],
  [
    'invalid_audience',
    {
      check: 'token.resource',
      remedy: 'call the address that the token is for, or log in with <BASE_URL>/mcp as resource.',
    },
  ],
]);

/** `said` is the gateway's own sentence. */
export function explainOwnTokenRefusal(
  token: string,
  reason: string | undefined,
  said: string,
): Finding {
  if (inspectOwnToken(token).kind === 'refresh') return refuseRefreshToken();
  const what = `The gateway refuses the token: ${said}`;
  const { check, remedy } = REFUSALS.get(reason) ?? {};
  return check === undefined || remedy === undefined
    ? failure('token.unknown', { what, ...UNKNOWN })
    : failure(check, { what, remedy });
}

/** What only a login can show. */
export const reportUntriedLogin = (baseUrl: string): Finding =>
  unknown(CHECK, {
    what: 'whether a login works to its end, which takes a person.',
    remedy: `log in at ${baseUrl}/playground, which says what is wrong, or give an access token of a user: --token-file FILE`,
  });
