// Decisions 2 and 10: judge → admit → run. What a caller sent is judged without effect, then counted,
// and only then acted on; the answer follows the order of decisions 2 (limit, token, body).
import type { ProtectedEndpoint, PublicEndpoint } from '../core/endpoint.ts';
import { type GatewayError, toGatewayError } from '../core/errors/gateway-error.ts';
import type { GatewayRequest, PendingReply, Reply, RequestBody } from '../core/message.ts';
import type { UserContext } from '../core/user-context.ts';
import type { LimitCheck } from '../features/limits/limiter.ts';
import type { Caller } from '../features/limits/windows.ts';
import type { BodyOwner } from './body-budgets.ts';
import type { Incoming } from './incoming.ts';

/** Spec §5, or lets everybody in. @throws GatewayError with a reason of §7.1. */
export type Authenticate = (
  request: GatewayRequest,
  beforeFetch: () => Promise<void>,
) => Promise<UserContext | undefined>;

/** Of a request that has none, or whose body is not read. */
const NO_BODY: RequestBody = { type: 'json', value: undefined, text: '', hold: () => () => {} };

/** While a body took so long, in milliseconds, its token may have expired. */
const LATE_MS = 1000;

/** What token and body came to; `refusal` is answered unless a limit refuses first. */
interface Judgement {
  readonly caller: Caller;
  readonly user: UserContext | undefined;
  readonly body: RequestBody;
  readonly refusal: GatewayError | undefined;
}

/** A call of `/mcp`: its token decides which windows count it, so it is judged first. */
export function answerCall(
  incoming: Incoming,
  endpoint: ProtectedEndpoint,
  check: LimitCheck,
  authenticate: Authenticate,
): Promise<Reply> {
  const { request } = incoming;
  let release = () => {};
  // Not awaited: a function that waits would keep the body for as long as the call runs.
  return admit()
    .then((run) => run())
    .finally(() => release());

  async function admit(): Promise<PendingReply> {
    const { caller, user, body, refusal } = await judge();
    const session = await check.admit(caller, endpoint.sessionIdOf(request));
    if (refusal !== undefined) throw refusal;
    return () => endpoint.handle({ request, user, session, body });
  }

  async function judge(): Promise<Judgement> {
    const first = await judgeToken();
    if (first.refusal !== undefined || !endpoint.body) return first;
    check.refuseRemembered(first.caller);
    const read = await incoming.readBody(endpoint.body, ownerOf(first.user)).then(
      (body) => {
        // Until its call has taken it over: its caller may hang up any moment, and its bytes are here.
        release = body.hold();
        return { body, refusal: undefined };
      },
      (thrown: unknown) => ({ body: NO_BODY, refusal: toGatewayError(thrown) }),
    );
    const last = incoming.age() > LATE_MS ? await judgeToken() : first;
    return last.refusal === undefined ? { ...last, ...read } : last;
  }

  async function judgeToken(): Promise<Judgement> {
    try {
      const user = await authenticate(request, check.countAddress);
      return {
        caller: { kind: 'admitted', sub: user?.sub },
        user,
        body: NO_BODY,
        refusal: undefined,
      };
    } catch (thrown) {
      const refusal = toGatewayError(thrown);
      // Of any other failure it is not known whose token this is.
      if (refusal.row.status !== 401) throw refusal;
      return { caller: { kind: 'anonymous' }, user: undefined, body: NO_BODY, refusal };
    }
  }
}

/** An endpoint for everybody: counted by the address first, and by all callers where it holds. */
export async function answerOAuth(
  incoming: Incoming,
  endpoint: PublicEndpoint,
  check: LimitCheck,
): Promise<Reply> {
  await check.countAddress();
  const run = await judge().catch(async (thrown: unknown) => {
    await check.countRefused();
    throw thrown;
  });
  await check.admit({ kind: 'admitted', sub: undefined });
  return run();

  async function judge(): Promise<PendingReply> {
    const body = endpoint.body
      ? await incoming.readBody(endpoint.body, 'stranger', endpoint.maxBodyBytes)
      : NO_BODY;
    return endpoint.judge(incoming.request, body);
  }
}

/** With `AUTH_REQUIRED=false` nobody is a stranger. */
const ownerOf = (user: UserContext | undefined): BodyOwner =>
  user === undefined ? 'anonymous' : { sub: user.sub };
