// What is done with tokens that a client got: one line of the log for every login, which says who and by which client, and
// never the token; and a note of the client, where something depends on it.

import { OPERATORS_CLIENT_ID } from '../../http/endpoint/own-clients.ts';
import type { Clock } from '../../platform/clock.ts';
import { hashSha256 } from '../../platform/ids.ts';
import { parseObject } from '../../platform/json.ts';
import type { Log } from '../../platform/log.ts';
import { buildTokenClientKey } from '../../store/keys.ts';
import type { KeyValue } from '../../store/store.ts';
import type { LoginFacts } from '../request/login-facts.ts';

interface LoggedLogin {
  readonly clientId: string;
  /** What the client calls itself. */
  readonly clientName: string | undefined;
  /** `sub` of the user; undefined where the access token names nobody. */
  readonly user: string | undefined;
  /** Whose users that is one of; undefined in proxy mode, where the provider's own tokens say who it is. */
  readonly issuer?: string | undefined;
  /** Whether they came by a refresh token, which happens every few minutes. */
  readonly isRefresh: boolean;
  /** Whether they were the last answer of the grant, given again. */
  readonly isLastAnswer?: boolean;
}

/** Returns the facts of the reply that has the tokens. */
export type LogLogin = (login: LoggedLogin) => LoginFacts;

const MAX_LOGGED_NAME = 100;

/** Who, and by which client, as the log says it wherever a login begins or ends. */
export const describeLogin = ({
  clientId,
  clientName,
  user,
  issuer,
}: Pick<LoggedLogin, 'clientId' | 'clientName' | 'user' | 'issuer'>) => ({
  client: clientId,
  clientName: clientName?.slice(0, MAX_LOGGED_NAME),
  user,
  issuer,
});

export const createLoginLog = (log: Log): LogLogin =>
  function logLogin({ isRefresh, isLastAnswer, ...login }) {
    const { user, issuer } = login;
    const facts = describeLogin(login);
    if (isRefresh) log.debug('Refreshed.', { ...facts, ...(isLastAnswer && { isLastAnswer }) });
    else log.info('Logged in.', facts);
    return { ...(user !== undefined && { user }), ...(issuer !== undefined && { issuer }) };
  };

// §22.1: in proxy mode all tokens are made for the one client at the provider. Those that the operators' page got are noted when they
// are handed out.

interface NoteClientDeps {
  readonly store: Pick<KeyValue, 'set'>;
  readonly clock: Clock;
  readonly log: Log;
}

/** Never rejects: without the note the token works, but not for operators. */
export type NoteClient = (token: unknown, clientId: string) => Promise<void>;

export function createNoteClient({ store, clock, log }: NoteClientDeps): NoteClient {
  return async function noteClient(token, clientId) {
    if (typeof token !== 'string' || clientId !== OPERATORS_CLIENT_ID) return;
    const ttlSeconds = Math.ceil(readExpiry(token) - clock.now() / 1000) + TOLERANCE_SECONDS;
    if (!(ttlSeconds > TOLERANCE_SECONDS)) return;
    try {
      await store.set(buildTokenClientKey(hashSha256(token)), clientId, ttlSeconds);
    } catch (error) {
      log.warn(
        "The store could not note that the operators' page got a token, so the token is of no use to operators. Log in there again.",
        { client: clientId, cause: error },
      );
    }
  };
}

/** A token counts a little longer than it says, because clocks differ. */
const TOLERANCE_SECONDS = 300;

/** Epoch seconds. The token came from the provider itself, by TLS: its claims need no check. */
function readExpiry(token: string): number {
  const claims = parseObject(Buffer.from(token.split('.')[1] ?? '', 'base64url'));
  return typeof claims?.exp === 'number' ? claims.exp : 0;
}
