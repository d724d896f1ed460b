// One line of the log for every login: who, by which client. Never the token.

import type { Log } from '../../platform/log.ts';
import type { LoginFacts } from '../request/login-facts.ts';

/** Tokens that a client got. */
export interface IssuedTokens {
  readonly clientId: string;
  /** What the client calls itself. */
  readonly clientName: string | undefined;
  /** `sub` of the user; undefined where the access token names nobody. */
  readonly user: string | undefined;
  /** Whether they came by a refresh token, which happens every few minutes. */
  readonly isRefresh: boolean;
  /** Whether they were the last answer of the grant, given again. */
  readonly isLastAnswer?: boolean;
}

/** Returns the facts of the reply that has the tokens. */
export type LogLogin = (issued: IssuedTokens) => LoginFacts;

const MAX_LOGGED_NAME = 100;

export const createLoginLog = (log: Log): LogLogin =>
  function logLogin({ clientId, clientName, user, isRefresh, isLastAnswer }) {
    const facts = {
      client: clientId,
      clientName: clientName?.slice(0, MAX_LOGGED_NAME),
      user,
    };
    if (isRefresh) log.debug('Refreshed.', { ...facts, ...(isLastAnswer && { isLastAnswer }) });
    else log.info('Logged in.', facts);
    return user === undefined ? {} : { user };
  };
