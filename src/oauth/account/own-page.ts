// §5.11, §24.3, §27.4: what the endpoints of the gateway's own pages for users have in common.
import type { GatewayRequest, PendingReply, Reply, RequestBody } from '../../endpoint/message.ts';
import { OAUTH } from '../../endpoint/render-error.ts';
import { fail } from '../../errors/gateway-error.ts';
import { isEqualSecret } from '../../platform/ids.ts';
import type { RequestParameters } from '../request/parameters.ts';
import type { BrowserSession } from './browser-sessions.ts';

export const OWN_PAGE = {
  kind: 'public',
  errors: OAUTH,
  hasErrorPages: true,
  isPageOfUser: true,
  isNavigation: true,
} as const;

export const OWN_FORM = { body: 'json or form', maxBodyBytes: 16_384 } as const;

/** Nothing is to be judged before it is counted. */
export const defer =
  (run: (request: GatewayRequest, body: RequestBody) => Promise<Reply>) =>
  async (request: GatewayRequest, body: RequestBody): Promise<PendingReply> =>
  () =>
    run(request, body);

/** RFC 9700 §4.7. @throws GatewayError where the form is none of this session. */
export function checkCsrf(
  parameters: Pick<RequestParameters, 'get'>,
  { csrf }: BrowserSession,
): void {
  if (isEqualSecret(parameters.get('csrf') ?? '', csrf)) return;
  fail('oauth_invalid_request', {
    details: 'This page was left open for too long. Go back, load it again, and try once more.',
  });
}
