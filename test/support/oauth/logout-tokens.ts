// Logout tokens as a provider makes them (OpenID Connect Back-Channel Logout §2.4), and how they are sent.
import { randomUUID } from 'node:crypto';
import type { Clock } from '../../../src/platform/clock.ts';
import type { ManualClock } from '../gateway/clock.ts';
import type { TestGateway, TestResponse } from '../gateway/gateway.ts';
import { CLIENT_ID, type Claims, type OpaqueProvider } from '../providers/opaque-provider.ts';
import type { SignOptions } from './issuer.ts';

export const LOGOUT_PATH = '/oauth/backchannel-logout';
export const EVENT = 'http://schemas.openid.net/event/backchannel-logout';

export interface LogoutTokens {
  /** All that a right one has, of the session `sid-1` of `user-1`; undefined leaves a claim out. */
  claims(change?: Claims): Claims;
  sign(change?: Claims, options?: SignOptions): Promise<string>;
}

export function createLogoutTokens({
  provider,
  clock,
}: {
  readonly provider: OpaqueProvider;
  readonly clock: Clock;
}): LogoutTokens {
  const tokens: LogoutTokens = {
    claims(change = {}) {
      const now = Math.floor(clock.now() / 1000);
      return {
        iss: provider.issuer.url,
        aud: CLIENT_ID,
        iat: now,
        exp: now + 120,
        jti: randomUUID(),
        events: { [EVENT]: {} },
        sub: 'user-1',
        sid: 'sid-1',
        ...change,
      };
    },
    sign: (change, { header, ...options } = {}) =>
      provider.issuer.sign(tokens.claims(change), {
        ...options,
        header: { typ: 'logout+jwt', ...header },
      }),
  };
  return tokens;
}

export const sendLogout = (
  gateway: Pick<TestGateway, 'request'>,
  logoutToken: string,
  remoteAddress?: string,
): Promise<TestResponse> =>
  gateway.request({
    method: 'POST',
    path: LOGOUT_PATH,
    ...(remoteAddress !== undefined && { remoteAddress }),
    body: new URLSearchParams({ logout_token: logoutToken }),
  });

/** Where the gateway has no such key, it waits until it may ask the provider again. */
export async function sendLogoutAsTimePasses(
  { gateway, clock }: { readonly gateway: TestGateway; readonly clock: ManualClock },
  logoutToken: string,
  remoteAddress?: string,
): Promise<TestResponse> {
  let isAnswered = false;
  const answer = sendLogout(gateway, logoutToken, remoteAddress).finally(() => {
    isAnswered = true;
  });
  for (let turn = 1; !isAnswered; turn += 1) {
    await new Promise(setImmediate);
    if (turn % 200 === 0) clock.advance(2000);
  }
  return answer;
}
