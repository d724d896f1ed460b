// Judges a call of an endpoint that needs a token: the token decides which windows count the call, so it
// comes first, and a body is read only behind a valid one.
import type { Clock } from '../core/clock.ts';
import type { ProtectedEndpoint } from '../core/endpoint.ts';
import { type GatewayError, toGatewayError } from '../core/errors/gateway-error.ts';
import { type GatewayRequest, NO_BODY } from '../core/message.ts';
import type { UserContext } from '../core/user-context.ts';
import type { LimitCheck } from '../features/limits/limiter.ts';
import type { Caller } from '../features/limits/windows.ts';
import type { BodyOwner } from './body-memory.ts';
import type { CountedRequest } from './exchange.ts';
import type { BodyReader } from './read-body.ts';
import type { ReceivedRequest } from './receive-request.ts';

/**
 * §5, or lets everybody in. A promise only where a key has to be fetched first: `beforeFetch` is
 * called then.
 *
 * @throws GatewayError with a reason of §7.1, at once or by the promise.
 */
export type Authenticate = (
  request: GatewayRequest,
  beforeFetch: () => Promise<void>,
) => UserContext | undefined | Promise<UserContext | undefined>;

export interface JudgeProtectedDeps {
  readonly authenticate: Authenticate;
  readonly readBody: BodyReader;
  readonly clock: Clock;
}

/** @throws GatewayError where it is not known who calls, and while a limit is known to refuse. */
export type JudgeProtected = (
  received: ReceivedRequest,
  endpoint: ProtectedEndpoint,
  limits: LimitCheck,
) => Promise<CountedRequest>;

/** While a body took so long, in milliseconds, its token may have expired. */
const LATE_MS = 1000;

export function createJudgeProtected({
  authenticate,
  readBody,
  clock,
}: JudgeProtectedDeps): JudgeProtected {
  return async function judgeProtected({ request, body, receivedAt }, endpoint, limits) {
    let token = judgeToken(request, limits);
    // With the key at hand there is nothing to wait for.
    if (token instanceof Promise) token = await token;
    if (token.refusal !== undefined) return refuse(limits, token.caller, token.refusal);
    limits.checkRememberedRefusal(token.caller);
    let readableBody = NO_BODY;
    let bodyRefusal: unknown;
    if (endpoint.body) {
      const rules = { accepts: endpoint.body, owner: findBodyOwner(token.user) };
      try {
        readableBody = await readBody(body, rules);
      } catch (thrown) {
        bodyRefusal = thrown;
      }
      if (clock.monotonic() - receivedAt > LATE_MS) token = await judgeToken(request, limits);
    }
    const { caller, user } = token;
    const refusal = token.refusal ?? bodyRefusal;
    if (refusal !== undefined) return refuse(limits, caller, refusal);
    try {
      const { access, run } = endpoint.judge({ request, user, body: readableBody });
      return { limits, caller, access, run };
    } catch (thrown) {
      return refuse(limits, caller, thrown);
    }
  };

  function judgeToken(
    request: GatewayRequest,
    limits: LimitCheck,
  ): JudgedToken | Promise<JudgedToken> {
    try {
      const user = authenticate(request, limits.countAddress);
      return user instanceof Promise ? user.then(admit, refuseToken) : admit(user);
    } catch (thrown) {
      return refuseToken(thrown);
    }
  }
}

const admit = (user: UserContext | undefined): JudgedToken => ({
  caller: { kind: 'admitted', sub: user?.sub },
  user,
  refusal: undefined,
});

function refuseToken(thrown: unknown): JudgedToken {
  const refusal = toGatewayError(thrown);
  // Of any other failure it is not known whose token this is.
  if (refusal.row.status !== 401) throw refusal;
  return { caller: { kind: 'unauthenticated' }, user: undefined, refusal };
}

interface JudgedToken {
  readonly caller: Caller;
  readonly user: UserContext | undefined;
  readonly refusal: GatewayError | undefined;
}

/** Counted like any other, and refused once no limit does so first. */
const refuse = (limits: LimitCheck, caller: Caller, refusal: unknown): CountedRequest => ({
  limits,
  caller,
  access: undefined,
  run() {
    throw refusal;
  },
});

/** Without a user here, nobody has to log in. */
const findBodyOwner = (user: UserContext | undefined): BodyOwner =>
  user === undefined ? 'authDisabled' : { sub: user.sub };
