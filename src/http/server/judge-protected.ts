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
  type RequestBody,
  readBearerToken,
  type UserContext,
} from '../endpoint/message.ts';
import type { LimitCheck, Limiter } from '../limits/limiter.ts';
import { type CountedCaller, UNAUTHENTICATED } from '../limits/windows.ts';
import type { ReadRequestBody } from './read-body.ts';
import type { ReceivedRequest } from './receive-request.ts';
import type { MemoryOwner } from './transfer-memory.ts';

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
export interface CountedRequest extends Pick<JudgedCall, 'access'> {
  readonly limits: LimitCheck;
  readonly caller: CountedCaller;
  /** The key of the caller's grant, where the gateway's own token let it in. */
  readonly grantKey: string | undefined;
  run(session: SessionLookup, grant: GrantLookup): Reply | Promise<Reply>;
}

/** A request whose token was looked at. */
interface TokenCheckedRequest {
  readonly received: ReceivedRequest;
  readonly endpoint: ProtectedEndpoint;
  readonly limits: LimitCheck;
  readonly token: JudgedToken;
}

interface JudgedToken {
  readonly caller: CountedCaller;
  readonly user: UserContext | undefined;
  readonly refusal: GatewayError | undefined;
}

interface GrantedCall {
  readonly endpoint: ProtectedEndpoint;
  readonly call: ProtectedCall;
  readonly user: UserContext;
  readonly judged: JudgedCall;
  readonly bodyRefusal: unknown;
}

/** While a body took so long, in milliseconds, its token may have expired. */
const LATE_MS = 1000;

export function createJudgeProtected(
  clock: Clock,
  { authenticate, noteRefusedToken, reload, getChallenge }: CallerChecks,
  readBody: ReadRequestBody,
) {
  /** @throws GatewayError where it is not known who calls, and while a limit is known to refuse, at once or by the promise. */
  return function judgeProtected(
    received: ReceivedRequest,
    endpoint: ProtectedEndpoint,
    limits: LimitCheck,
  ): CountedRequest | Promise<CountedRequest> {
    const token = judgeToken(received.request, limits);
    // With the key at hand there is nothing to wait for.
    return token instanceof Promise
      ? token.then((judged) => judgeBody({ received, endpoint, limits, token: judged }))
      : judgeBody({ received, endpoint, limits, token });
  };

  function judgeBody(checked: TokenCheckedRequest): CountedRequest | Promise<CountedRequest> {
    const { received, endpoint, limits, token } = checked;
    const { caller, refusal } = token;
    if (refusal !== undefined) return refuse(received.request, limits, refusal);
    limits.checkRememberedRefusal(caller);
    if (endpoint.body === undefined) return judgeMessage(checked, NO_BODY, undefined);
    const rules = { accepts: endpoint.body, owner: findBodyOwner(token.user) };
    let reading: RequestBody | Promise<RequestBody>;
    try {
      reading = readBody(received.body, rules);
    } catch (thrown) {
      return judgeRead(checked, NO_BODY, thrown);
    }
    return reading instanceof Promise
      ? reading.then(
          (body) => judgeRead(checked, body, undefined),
          (thrown: unknown) => judgeRead(checked, NO_BODY, thrown),
        )
      : judgeRead(checked, reading, undefined);
  }

  /** Goes by the token as it is now that the body is there. */
  function judgeRead(
    checked: TokenCheckedRequest,
    body: RequestBody,
    bodyRefusal: unknown,
  ): CountedRequest | Promise<CountedRequest> {
    const { received, limits } = checked;
    const isLate = clock.monotonic() - received.receivedAt > LATE_MS;
    if (!isLate) return judgeMessage(checked, body, bodyRefusal);
    const token = judgeToken(received.request, limits);
    return token instanceof Promise
      ? token.then((judged) => judgeMessage({ ...checked, token: judged }, body, bodyRefusal))
      : judgeMessage({ ...checked, token }, body, bodyRefusal);
  }

  function judgeMessage(
    { received: { request }, endpoint, limits, token }: TokenCheckedRequest,
    body: RequestBody,
    bodyRefusal: unknown,
  ): CountedRequest {
    const { caller, user, refusal } = token;
    if (refusal !== undefined) return refuse(request, limits, refusal);
    const call = { request, user, body };
    const judged = judgeCall(endpoint, call, bodyRefusal);
    const { access } = judged;
    if (user?.grant === undefined) {
      return { limits, caller, access, grantKey: undefined, run: judged.run };
    }
    // Apart, so that the closures of such a call cost no other one.
    const run = createGrantedRun({ endpoint, call, user, judged, bodyRefusal });
    return { limits, caller, access, grantKey: user.grant.key, run };
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

  /**
   * Runs a call whose caller came by the gateway's own token, as the store says of its grant: in the step that counted it.
   * Where the grant has changed since this process read it, the message is judged again for the user as it is now, since to
   * judge has no effect. A sub never changes within a grant: it was counted in the right windows, and the session is its own.
   */
  function createGrantedRun({
    endpoint,
    call,
    user,
    judged,
    bodyRefusal,
  }: GrantedCall): CountedRequest['run'] {
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

  function challenge(error: GatewayError, { request }: ProtectedCall): GatewayError {
    return addChallenge(error, getChallenge?.(request.path));
  }
}

const admit = (user: UserContext | undefined): JudgedToken => ({
  caller: {
    kind: 'admitted',
    user: user && nameOwner(user),
    userMax: user?.grant?.maxCalls,
  },
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

/** Without a user here, nobody has to log in. */
const findBodyOwner = (user: UserContext | undefined): MemoryOwner =>
  user === undefined ? 'authDisabled' : { user: nameOwner(user) };
