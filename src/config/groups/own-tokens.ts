// Broker mode: the tokens of the gateway's own that clients get, and how long what they stand for lives.
import { flag, integer, ONE_YEAR_SECONDS, oneOf } from '../rules.ts';
import { defineSetting, type Read, readAll } from '../setting.ts';
import { providerSettings } from './provider.ts';

/** §5.11: the gateway issues tokens of its own. Times are in seconds. */
export interface TokensConfig {
  /** Whether tokens that the provider issued for OIDC_AUDIENCE are accepted beside them. */
  readonly acceptsProviderTokens: boolean;
  readonly accessSeconds: number;
  /** Of a grant in all; 0 for no end. */
  readonly grantMaxSeconds: number;
  /** Of a grant in all, where the provider gave no refresh token. */
  readonly grantUnrenewedSeconds: number;
  /** After which a refresh asks the provider whether the user still may. */
  readonly renewalSeconds: number;
  /** For which refreshes go on while the provider cannot be asked. */
  readonly renewalGraceSeconds: number;
  /** What a logout at the provider ends. */
  readonly backchannelEnds: 'session' | 'all';
  /** Whether a user whose logins all end has no connection to a server (§24) afterwards. */
  readonly endsConnections: boolean;
  /** By which the provider's clock may differ, in ID tokens. */
  readonly clockToleranceSeconds: number;
}

const ONE_HOUR_SECONDS = 3600;

/** Some clients refresh at each look at a session once an access token has less than five minutes left. */
const MIN_ACCESS_SECONDS = 600;

export const ownTokenSettings = {
  acceptsProviderTokens: defineSetting('OAUTH_ACCEPT_PROVIDER_TOKENS', flag, {
    default: { value: false },
    summary: 'Accept tokens of the provider beside the gateway’s own.',
    details: 'For service accounts and CI that get a JWT for OIDC_AUDIENCE at the provider itself.',
    mode: 'broker',
  }),
  accessSeconds: defineSetting('OAUTH_ACCESS_TTL_SECONDS', integer(MIN_ACCESS_SECONDS, 86_400), {
    default: { value: ONE_HOUR_SECONDS },
    summary: 'Seconds for which an access token of the gateway’s own lives.',
    details: 'Ending a login does not wait for it: it holds at the next call.',
    mode: 'broker',
  }),
  grantMaxSeconds: defineSetting('OAUTH_GRANT_MAX_SECONDS', integer(0, ONE_YEAR_SECONDS * 10), {
    default: { value: 0 },
    summary:
      'Seconds after which a user must log in again, however often the client refreshes; 0 for never.',
    details: 'A login that nobody uses ends after OAUTH_REFRESH_TTL_SECONDS.',
    mode: 'broker',
  }),
  grantUnrenewedSeconds: defineSetting(
    'OAUTH_GRANT_UNRENEWED_SECONDS',
    integer(MIN_ACCESS_SECONDS, ONE_YEAR_SECONDS),
    {
      default: { value: 28_800 },
      summary: 'Seconds for which a login lives where the provider gave no refresh token.',
      details: 'The gateway cannot ask such a provider whether the user still may.',
      mode: 'broker',
    },
  ),
  renewalSeconds: defineSetting('OAUTH_RENEWAL_SECONDS', integer(0, 86_400), {
    default: { value: ONE_HOUR_SECONDS },
    summary:
      'Seconds after which a refresh asks the provider whether the user still may; 0 for each refresh.',
    details:
      'Claims and groups are taken anew then. A user who was disabled at the provider is out after these seconds and OAUTH_ACCESS_TTL_SECONDS at most.',
    mode: 'broker',
  }),
  renewalGraceSeconds: defineSetting('OAUTH_RENEWAL_GRACE_SECONDS', integer(0, 86_400 * 7), {
    default: { value: ONE_HOUR_SECONDS },
    summary: 'Seconds for which refreshes go on while the provider cannot be asked.',
    details: 'Afterwards they are answered with 503 until it can. Nobody is logged out by that.',
    mode: 'broker',
  }),
  backchannelEnds: defineSetting('OAUTH_BACKCHANNEL_ENDS', oneOf('session', 'all'), {
    default: { value: 'session' },
    summary: 'Which logins end where the provider says that somebody logged out there.',
    details:
      '`session`: those that the session at the provider led to, or all of the user where the provider names no session. `all`: all of the user. The provider says it to /oauth/backchannel-logout, if you register that address there: see [Providers](providers.md#logout-from-the-provider).',
    mode: 'broker',
  }),
  endsConnections: defineSetting('CONNECTIONS_END_WITH_LOGOUT', flag, {
    default: { value: false },
    summary: 'End the connections to servers of a user who is logged out everywhere.',
    details:
      'That is: by the user at /account, by an operator, or by a logout at the provider. Their tokens are revoked at the servers, and deleted here. Without it, connections stay for the next login: see [Servers that want a login](server-logins.md#when-somebody-leaves).',
    mode: 'broker',
  }),
};

export const readTokensConfig = (read: Read): TokensConfig => ({
  ...readAll(ownTokenSettings, read),
  clockToleranceSeconds: read(providerSettings.clockToleranceSeconds),
});
