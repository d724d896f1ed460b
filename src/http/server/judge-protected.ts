// Judges a call of an endpoint that needs a token: the token decides which windows count the call, so it
// comes first, and a body is read only behind a valid one.

import { fail, GatewayError, toGatewayError } from '../../errors/gateway-error.ts';
import type { Clock } from '../../platform/clock.ts';
import { nameOwner } from '../../store/owner.ts';
import type { GrantLookup, SessionLookup } from '../../store/store.ts';
import { addChallenge, type GetChallenge } from '../endpoint/bearer.ts';
import type { JudgedCall, ProtectedCall, ProtectedEndpoint } from '../endpoint/endpoint.ts';
import {
  type GatewayRequest,
  getHeader,
  NO_BODY,
  type Reply,
  readBearerToken,
  type UserContext,
} from '../endpoint/message.ts';
import type { CountedCall, LimitCheck, Limiter } from '../limits/limiter.ts';
import { type CountedCaller, UNAUTHENTICATED } from '../limits/windows.ts';
import type { ReadRequestBody } from './read-body.ts';
import type { ReceivedRequest } from './receive-request.ts';

/** Lets in all callers, or refuses them. */
export interface CallerChecks {
  readonly limiter: Limiter;
  /**
   * §5, or lets everybody in. A promise only where a key has to be fetched first: `beforeFetch` is
   * called then.
   *
   * @throws GatewayError with a reason of §7.1, at once or by the promise.
   */
  authenticate(
    request: GatewayRequest,
    beforeFetch: () => Promise<void>,
  ): UserContext | undefined | Promise<UserContext | undefined>;
  /** Told of a token that is refused with 401, before its bearer is. Never rejects. */
  readonly noteRefusedToken?: ((token: string) => Promise<void>) | undefined;
  /** The user as the grant says now, whose token was looked at. Undefined where the gateway issues no tokens. */
  readonly reload?: ((user: UserContext) => Promise<UserContext>) | undefined;
  /** Undefined where nobody has to log in. */
  readonly getChallenge?: GetChallenge | undefined;
}

/** A request that was judged, and is counted before it runs. */
export interface CountedRequest extends CountedCall {
  readonly limits: LimitCheck;
  run(session: SessionLookup, grant: GrantLookup): Reply | Promise<Reply>;
}

interface JudgedToken {
  readonly caller: CountedCaller;
  readonly user: UserContext | undefined;
  readonly refusal: GatewayError | undefined;
}

/** While a body took so long, in milliseconds, its token may have expired. */
const LATE_MS = 1000;

export function createJudgeProtected(
  clock: Clock,
  { authenticate, noteRefusedToken, reload, getChallenge }: CallerChecks,
  readBody: ReadRequestBody,
) {
  /** @throws GatewayError where it is not known who calls, and while a limit is known to refuse. */
  return async function judgeProtected(
    { request, body: incoming, receivedAt }: ReceivedRequest,
    endpoint: ProtectedEndpoint,
    limits: LimitCheck,
  ): Promise<CountedRequest> {
    // With the key, and the body, at hand there is nothing to wait for.
    const judging = judgeToken(request, limits);
    let token = judging instanceof Promise ? await judging : judging;
    if (token.refusal !== undefined) return refuse(request, limits, token.refusal);
    limits.checkRememberedRefusal(token.caller);
    let body = NO_BODY;
    let bodyRefusal: unknown;
    if (endpoint.body !== undefined) {
      try {
        // Without a user here, nobody has to log in.
        const owner = token.user === undefined ? 'authDisabled' : { user: nameOwner(token.user) };
        const reading = readBody(incoming, { accepts: endpoint.body, owner });
        body = reading instanceof Promise ? await reading : reading;
      } catch (thrown) {
        bodyRefusal = thrown;
      }
      // Goes by the token as it is now that the body is there.
      if (clock.monotonic() - receivedAt > LATE_MS) token = await judgeToken(request, limits);
      if (token.refusal !== undefined) return refuse(request, limits, token.refusal);
    }
    const { caller, user } = token;
    const call = { request, user, body };
    const judged = judgeCall(endpoint, call, bodyRefusal);
    const { access } = judged;
    if (user?.grant === undefined)
      return { limits, caller, access, grantKey: undefined, run: judged.run };
    // Apart, so that the closures of such a call cost no other one.
    const run = createGrantedRun(endpoint, call, user, judged, bodyRefusal);
    return { limits, caller, access, grantKey: user.grant.key, run };
  };

  function judgeToken(
    request: GatewayRequest,
    limits: LimitCheck,
  ): JudgedToken | Promise<JudgedToken> {
    try {
      const user = authenticate(request, () => limits.countAddress());
      return user instanceof Promise ? user.then(admit, refuseToken) : admit(user);
    } catch (thrown) {
      return refuseToken(thrown);
    }
  }

  /** Counted like any other, and refused once no limit does so first. */
  function refuse(
    request: GatewayRequest,
    limits: LimitCheck,
    refusal: GatewayError,
  ): CountedRequest {
    return {
      limits,
      caller: UNAUTHENTICATED,
      access: undefined,
      grantKey: undefined,
      async run() {
        const token = readBearerToken(getHeader(request, 'authorization'));
        if (token !== undefined) await noteRefusedToken?.(token);
        throw refusal;
      },
    };
  }

  /**
   * Runs a call whose caller came by the gateway's own token, as the store says of its grant: in the step that counted it.
   * Where the grant has changed since this process read it, the message is judged again for the user as it is now, since to
   * judge has no effect. A sub never changes within a grant: it was counted in the right windows, and the session is its own.
   */
  function createGrantedRun(
    endpoint: ProtectedEndpoint,
    call: ProtectedCall,
    user: UserContext,
    judged: JudgedCall,
    bodyRefusal: unknown,
  ): CountedRequest['run'] {
    /** @throws GatewayError `token_revoked`, or as the call. */
    return function runGranted(session, lookup) {
      // A store that failed has not said that the login was ended.
      if ('failure' in lookup) fail('internal_error', { cause: lookup.failure });
      if (lookup.version === undefined) throw challenge(new GatewayError('token_revoked'), call);
      if (lookup.version === user.grant?.version) return judged.run(session);
      const reloading = reload?.(user) ?? fail('internal_error');
      return reloading.then(
        (fresh) => judgeCall(endpoint, { ...call, user: fresh }, bodyRefusal).run(session),
        (thrown: unknown) => {
          throw challenge(toGatewayError(thrown), call);
        },
      );
    };
  }

  function challenge(error: GatewayError, { request }: ProtectedCall) {
    return addChallenge(error, getChallenge?.(request.path));
  }
}

const admit = (user: UserContext | undefined): JudgedToken => ({
  caller: { kind: 'admitted', user: user && nameOwner(user), userMax: user?.grant?.maxCalls },
  user,
  refusal: undefined,
});

function refuseToken(thrown: unknown): JudgedToken {
  const refusal = toGatewayError(thrown);
  // Any other failure does not say whose token this is.
  if (refusal.row.status !== 401) throw refusal;
  return { caller: UNAUTHENTICATED, user: undefined, refusal };
}

/** A body that is refused leaves nothing to judge. */
function judgeCall(
  endpoint: ProtectedEndpoint,
  call: ProtectedCall,
  bodyRefusal: unknown,
): JudgedCall {
  if (bodyRefusal !== undefined) return refuseCall(bodyRefusal);
  try {
    return endpoint.judge(call);
  } catch (thrown) {
    return refuseCall(thrown);
  }
}

const refuseCall = (refusal: unknown): JudgedCall => ({
  access: undefined,
  run() {
    throw refusal;
  },
});
