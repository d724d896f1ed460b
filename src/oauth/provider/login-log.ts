// One line of the log for every login: who, by which client. Never the token.

import type { TokenInspection } from '../../auth/token-verifier.ts';
import type { Log } from '../../platform/log.ts';

export interface LoginLogDeps {
  readonly log: Log;
  readonly inspectToken: (token: string) => TokenInspection;
}

/** Tokens that a client got. */
export interface IssuedTokens {
  readonly clientId: string;
  /** What the client calls itself. */
  readonly clientName: string | undefined;
  readonly accessToken: unknown;
  /** Whether they came by a refresh token, which happens every few minutes. */
  readonly isRefresh: boolean;
  /** Whether they were the last answer of the grant, given again. */
  readonly isLastAnswer?: boolean;
}

export type LogLogin = (issued: IssuedTokens) => void;

const MAX_LOGGED_NAME = 100;

export const createLoginLog = ({ log, inspectToken }: LoginLogDeps): LogLogin =>
  function logLogin({ clientId, clientName, accessToken, isRefresh, isLastAnswer }) {
    const facts = {
      client: clientId,
      clientName: clientName?.slice(0, MAX_LOGGED_NAME),
      user: typeof accessToken === 'string' ? inspectToken(accessToken).sub : undefined,
    };
    if (isRefresh) log.debug('Refreshed.', { ...facts, ...(isLastAnswer && { isLastAnswer }) });
    else log.info('Logged in.', facts);
  };
