// Judges a call of an endpoint that needs a token: the token decides which windows count the call, so it
// comes first, and a body is read only behind a valid one.
import type { Clock } from '../core/clock.ts';
import type { ProtectedEndpoint } from '../core/endpoint.ts';
import { type GatewayError, toGatewayError } from '../core/errors/gateway-error.ts';
import { type GatewayRequest, NO_BODY, type RequestBody } from '../core/message.ts';
import type { UserContext } from '../core/user-context.ts';
import type { LimitCheck } from '../features/limits/limiter.ts';
import type { Caller } from '../features/limits/windows.ts';
import type { BodyOwner } from './body-memory.ts';
import type { CountedRequest } from './exchange.ts';
import type { BodyReader } from './read-body.ts';
import type { ReceivedRequest } from './receive-request.ts';

/**
 * §5, or lets everybody in. `beforeFetch` is called where a key has to be fetched first.
 *
 * @throws GatewayError with a reason of §7.1.
 */
export type Authenticate = (
  request: GatewayRequest,
  beforeFetch: () => Promise<void>,
) => Promise<UserContext | undefined>;

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
    let token = await judgeToken(request, limits);
    let read = NOT_READ;
    if (token.refusal === undefined && endpoint.body) {
      limits.checkRememberedRefusal(token.caller);
      const rules = { accepts: endpoint.body, owner: findBodyOwner(token.user) };
      read = await readBody(body, rules).then(toReadBody, toRefusedBody);
      if (clock.monotonic() - receivedAt > LATE_MS) token = await judgeToken(request, limits);
    }
    const { caller, user } = token;
    const { body: readableBody } = read;
    return {
      limits,
      caller,
      sessionId: endpoint.readSessionId(request),
      refusal: token.refusal ?? read.refusal,
      run: (session) => endpoint.handle({ request, user, session, body: readableBody }),
    };
  };

  async function judgeToken(request: GatewayRequest, limits: LimitCheck): Promise<JudgedToken> {
    try {
      const user = await authenticate(request, limits.countAddress);
      return { caller: { kind: 'admitted', sub: user?.sub }, user, refusal: undefined };
    } catch (thrown) {
      const refusal = toGatewayError(thrown);
      // Of any other failure it is not known whose token this is.
      if (refusal.row.status !== 401) throw refusal;
      return { caller: { kind: 'unauthenticated' }, user: undefined, refusal };
    }
  }
}

interface JudgedToken {
  readonly caller: Caller;
  readonly user: UserContext | undefined;
  readonly refusal: GatewayError | undefined;
}

interface ReadBody {
  readonly body: RequestBody;
  readonly refusal: GatewayError | undefined;
}

const NOT_READ: ReadBody = { body: NO_BODY, refusal: undefined };

const toReadBody = (body: RequestBody): ReadBody => ({ body, refusal: undefined });

const toRefusedBody = (thrown: unknown): ReadBody => ({
  body: NO_BODY,
  refusal: toGatewayError(thrown),
});

/** Without a user here, nobody has to log in. */
const findBodyOwner = (user: UserContext | undefined): BodyOwner =>
  user === undefined ? 'authDisabled' : { sub: user.sub };
