// A call whose caller came by the gateway's own token: whether its grant still stands, as the step says that counted it.

import { fail, GatewayError, toGatewayError } from '../../errors/gateway-error.ts';
import type { GrantLookup, SessionLookup } from '../../store/store.ts';
import { addChallenge, type GetChallenge } from '../endpoint/bearer.ts';
import type { JudgedCall } from '../endpoint/endpoint.ts';
import type { GatewayRequest, Reply, UserContext } from '../endpoint/message.ts';

/** By what callers with a token are let in. */
export interface TokenChecks {
  readonly authenticate: Authenticate;
  /** Told of a token that is refused with 401, before its bearer is. Never rejects. */
  readonly noteRefusedToken?: ((token: string) => Promise<void>) | undefined;
  /** The user as the grant says now, whose token was looked at. Undefined where the gateway issues no tokens. */
  readonly reload?: ((user: UserContext) => Promise<UserContext>) | undefined;
  /** Undefined where nobody has to log in. */
  readonly getChallenge?: GetChallenge | undefined;
}

/**
 * §5, or lets everybody in. A promise only where a key has to be fetched first: `beforeFetch` is
 * called then.
 *
 * @throws GatewayError with a reason of §7.1, at once or by the promise.
 */
type Authenticate = (
  request: GatewayRequest,
  beforeFetch: () => Promise<void>,
) => UserContext | undefined | Promise<UserContext | undefined>;

interface GrantedCall {
  readonly request: GatewayRequest;
  readonly user: UserContext;
  readonly judged: JudgedCall;
  judgeAgain(fresh: UserContext): JudgedCall;
}

/** As `JudgedCall.run`, told what the store said of the grant. @throws GatewayError `token_revoked`, or as the call. */
type RunGrantedCall = (session: SessionLookup, lookup: GrantLookup) => Reply | Promise<Reply>;

/**
 * Where the grant has changed since this process read it, the message is judged again for the user as it is now, since to
 * judge has no effect. A sub never changes within a grant: it was counted in the right windows, and the session is its own.
 */
export const createRunGrantedCall =
  (
    { reload, getChallenge }: TokenChecks,
    { request, user, judged, judgeAgain }: GrantedCall,
  ): RunGrantedCall =>
  (session, lookup) => {
    // A store that failed has not said that the login was ended.
    if ('failure' in lookup) fail('internal_error', { cause: lookup.failure });
    if (lookup.version === undefined) throw challenge(new GatewayError('token_revoked'));
    if (lookup.version === user.grant?.version) return judged.run(session);
    const reloading = reload?.(user) ?? fail('internal_error');
    return reloading.then(
      (fresh) => judgeAgain(fresh).run(session),
      (thrown: unknown) => {
        throw challenge(toGatewayError(thrown));
      },
    );

    function challenge(error: GatewayError): GatewayError {
      return addChallenge(error, getChallenge?.(request.path));
    }
  };
