// The consent page, and the other pages of a login.
import { flag, integer, ONE_YEAR_SECONDS, oneOf, THIRTY_DAYS_SECONDS } from '../rules.ts';
import { defineSetting } from '../setting.ts';
import { chooseByMode } from './oauth-mode.ts';

export interface ConsentConfig<Kind extends 'page' | 'off' = 'page' | 'off'> {
  /** `page`: the user is asked before a client may log in. */
  readonly kind: Kind;
  /** How long an approval is remembered; 0 asks every time. */
  readonly ttlSeconds: number;
}

export const consentSettings = {
  kind: defineSetting('OAUTH_CONSENT', oneOf('page', 'off'), {
    default: chooseByMode({ proxy: 'off', broker: 'page' }),
    summary: 'Whether users approve a client before it can log in.',
    details:
      '`page` asks them. `off` leaves it to the provider, which knows one client only and cannot tell yours apart.',
  }),
  ttlSeconds: defineSetting('OAUTH_CONSENT_TTL_SECONDS', integer(0, ONE_YEAR_SECONDS), {
    default: { value: THIRTY_DAYS_SECONDS },
    summary: 'Seconds for which an approval is remembered; 0 asks every time.',
    details:
      'For each browser, client and redirect URI. In broker mode also for the person who logged in, until they or an operator log the client out.',
  }),
  popups: defineSetting('OAUTH_POPUPS', flag, {
    default: { value: false },
    summary: 'Lets web clients log in through a popup.',
    details: 'The pages of the login then have `Cross-Origin-Opener-Policy: unsafe-none`.',
  }),
};
