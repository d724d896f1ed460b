// Consent pages that wait for their users. What a page's form sends is worth something together with
// the browser that was shown the page.
import { fail } from '../../errors/gateway-error.ts';
import { generateSecret } from '../../platform/ids.ts';
import { isEqualSecret } from '../../platform/sha256.ts';
import { createSealedRecords, type RecordsDeps } from '../../store/seal/sealed-records.ts';
import type { Browser, Browsers } from './browser.ts';

/** Everything that the decision needs. */
interface PendingConsent {
  readonly query: string;
  /** Hash of the browser's cookie: an approval in another one is worth nothing. */
  readonly browser: string;
  readonly csrf: string;
}

/** Two secrets, which the page's form sends back. */
export interface ConsentForm {
  readonly request: string;
  readonly csrf: string;
}

export interface PendingConsents {
  put(query: string, browser: Browser): Promise<ConsentForm>;
  /**
   * The query of the authorization request. It is not used up: whoever goes back in the browser, or
   * presses twice, may answer again.
   *
   * @throws GatewayError unless this browser was shown the page, and lately.
   */
  requireQuery(form: ConsentForm, cookie: string | undefined): Promise<string>;
}

const TTL_SECONDS = 600;

export function createPendingConsents(records: RecordsDeps, browsers: Browsers): PendingConsents {
  // The store's name for it since 0.1.0.
  const pendingConsents = createSealedRecords<PendingConsent>(records, 'question', TTL_SECONDS);
  return {
    async put(query, browser) {
      const csrf = generateSecret();
      const request = await pendingConsents.put({ query, browser: browser.hash, csrf });
      return { request, csrf };
    },
    async requireQuery({ request, csrf }, cookie) {
      const pending = await pendingConsents.get(request);
      if (pending === undefined) {
        fail('oauth_invalid_request', {
          details: 'This page has expired. Start the login again from your app.',
        });
      }
      if (pending.browser !== browsers.readHash(cookie) || !isEqualSecret(pending.csrf, csrf)) {
        fail('oauth_invalid_request', {
          details:
            'This page was opened in another browser, or cookies are turned off. Turn on cookies and start the login again from your app.',
        });
      }
      return pending.query;
    },
  };
}
