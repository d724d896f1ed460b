// One line for every log-in: who, by which client. Never the token.
import type { Log } from '../../../core/log.ts';
import type { TokenInspection } from '../../auth/token-verifier.ts';

export interface TokenLogDeps {
  readonly log: Log;
  readonly inspectToken: (token: string) => TokenInspection;
}

export interface TokensGiven {
  readonly clientId: string;
  /** The client's own word for itself. */
  readonly clientName: string | undefined;
  readonly accessToken: unknown;
  /** Whether they came by a refresh token, which happens every few minutes. */
  readonly isRefresh: boolean;
}

export type TokenLog = (given: TokensGiven) => void;

const MAX_NAME = 100;

export const createTokenLog = ({ log, inspectToken }: TokenLogDeps): TokenLog =>
  function logTokens({ clientId, clientName, accessToken, isRefresh }) {
    const facts = {
      client: clientId,
      clientName: clientName?.slice(0, MAX_NAME),
      user: typeof accessToken === 'string' ? inspectToken(accessToken).sub : undefined,
    };
    if (isRefresh) log.debug('Refreshed.', facts);
    else log.info('Logged in.', facts);
  };
