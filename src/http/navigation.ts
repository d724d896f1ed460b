// The pages of a log-in: for the user's own eyes and hands, not for scripts of other pages.
import { fail } from '../core/errors/gateway-error.ts';
import { type GatewayRequest, header } from '../core/message.ts';

/**
 * Cookies go along with requests of same-site pages, whatever their origin: a script there could
 * read the question and answer it. Browsers say how each request came about (Fetch Metadata).
 *
 * @throws GatewayError `invalid_origin`.
 */
export function checkNavigation(request: GatewayRequest, ownOrigin: string): void {
  const origin = header(request, 'origin');
  const isForeign = origin !== undefined && origin !== ownOrigin;
  // Programs that are no browsers send none, or the mode alone.
  const isBrowser = header(request, 'sec-fetch-site') !== undefined;
  const isNavigation =
    header(request, 'sec-fetch-mode') === 'navigate' &&
    header(request, 'sec-fetch-dest') === 'document';
  if (!isForeign && (!isBrowser || isNavigation)) return;
  fail('invalid_origin', {
    details: 'This address is for a browser to go to, not for a script.',
    facts: { found: origin?.slice(0, 200) },
  });
}
