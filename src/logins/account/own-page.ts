// §5.11, §24.3, §27.4: what the endpoints of the gateway's own pages for users have in common.

import { fail } from '../../errors/gateway-error.ts';
import type { JudgedRequest } from '../../http/endpoint/endpoint.ts';
import {
  type GatewayRequest,
  getHeader,
  type Reply,
  type RequestBody,
} from '../../http/endpoint/message.ts';
import type { RequestParameters } from '../../http/endpoint/parameters.ts';
import { OAUTH } from '../../http/endpoint/render-error.ts';
import { isEqualSecret } from '../../platform/ids.ts';
import type { BrowserSession, BrowserSessions } from './browser-sessions.ts';

export const OWN_PAGE = {
  kind: 'public',
  errors: OAUTH,
  hasErrorPages: true,
  isPageOfUser: true,
  isNavigation: true,
} as const;

export const OWN_FORM = { body: 'json or form', maxBodyBytes: 16_384 } as const;

/** Who comes without a session may be anybody. Nothing else is to be judged before the request is counted. */
export const createJudgePage =
  ({ has }: Pick<BrowserSessions, 'has'>) =>
  (run: (request: GatewayRequest, body: RequestBody) => Promise<Reply>) =>
  async (request: GatewayRequest, body: RequestBody): Promise<JudgedRequest> => {
    const pending = () => run(request, body);
    return (await has(getHeader(request, 'cookie'))) ? pending : { runAnonymous: pending };
  };

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
