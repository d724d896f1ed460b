// The first step of a request's way: what a caller sent is judged, without effect (reference §11).
import type { Clock } from '../core/clock.ts';
import type { Endpoint, ProtectedEndpoint, PublicEndpoint } from '../core/endpoint.ts';
import { type GatewayError, toGatewayError } from '../core/errors/gateway-error.ts';
import {
  type GatewayRequest,
  header,
  type PendingReply,
  type Reply,
  type RequestBody,
} from '../core/message.ts';
import type { SessionLookup } from '../core/store/store.ts';
import type { UserContext } from '../core/user-context.ts';
import type { LimitCheck, Limiter } from '../features/limits/limiter.ts';
import type { Caller } from '../features/limits/windows.ts';
import type { BodyOwner } from './body-memory.ts';
import type { HostCheck } from './host-check.ts';
import { checkNavigation, checkOrigin, type RequestOrigin } from './origin-check.ts';
import type { BodyReader } from './read-body.ts';
import type { ReceivedRequest } from './receive-request.ts';
import { type Destination, findEndpoint, type Router } from './router.ts';

export interface JudgeDeps {
  readonly router: Router;
  readonly checkHost: HostCheck;
  /** Of BASE_URL. */
  readonly ownOrigin: string;
  readonly limiter: Limiter;
  readonly authenticate: Authenticate;
  readonly readBody: BodyReader;
  readonly clock: Clock;
}

/**
 * Spec §5, or lets everybody in. `beforeFetch` is called where a key has to be fetched first.
 *
 * @throws GatewayError with a reason of §7.1.
 */
export type Authenticate = (
  request: GatewayRequest,
  beforeFetch: () => Promise<void>,
) => Promise<UserContext | undefined>;

/** A request and what is found out about it on its way. Its body, once read, is not kept here. */
export interface Exchange {
  readonly received: ReceivedRequest;
  readonly destination: Destination;
  readonly origin: RequestOrigin;
  /** From when it is known. */
  endpoint: Endpoint | undefined;
  /** From when a limit has looked at the request. */
  limits: LimitCheck | undefined;
}

/** What judging a request came to. */
export type Judged = UncountedRequest | CountedRequest;

export interface UncountedRequest {
  readonly limits: undefined;
  readonly run: PendingReply;
}

export interface CountedRequest {
  readonly limits: LimitCheck;
  readonly caller: Caller;
  /** The session that is read in the step that counts the request. */
  readonly sessionId: string | undefined;
  /** Answered, in place of a run, unless a limit refuses first. */
  readonly refusal: GatewayError | undefined;
  run(session: SessionLookup): Reply | Promise<Reply>;
}

/** @throws GatewayError for what is refused whatever the limits say. */
export type Judge = (exchange: Exchange) => Promise<Judged>;

/** While a body took so long, in milliseconds, its token may have expired. */
const LATE_MS = 1000;

export function createJudge(deps: JudgeDeps): Judge {
  const { router, checkHost, ownOrigin, limiter, authenticate, readBody, clock } = deps;

  return async function judge(exchange) {
    const { received, destination, origin } = exchange;
    const { request, authority } = received;
    const { route } = destination;
    checkHost(header(request, 'host'), authority, route?.isProbe === true);
    checkOrigin(origin);
    if (route?.isNavigation) checkNavigation(request, ownOrigin);
    if (request.method === 'OPTIONS') return judgeUncounted(() => ({ status: 204 }));
    if (route === undefined) return judgeUncounted(() => router.findPage(request, destination));
    const endpoint = findEndpoint(route, request.method);
    exchange.endpoint = endpoint;
    if (endpoint.kind === 'open') return judgeUncounted(() => endpoint.handle(request));
    const limits = limiter.startCheck(endpoint.limit, request.clientIp);
    exchange.limits = limits;
    return endpoint.kind === 'protected'
      ? judgeProtected(received, endpoint, limits)
      : judgePublic(received, endpoint, limits);
  };

  /** The token decides which windows count the call, so it comes first; a body only behind a valid one. */
  async function judgeProtected(
    { request, body, receivedAt }: ReceivedRequest,
    endpoint: ProtectedEndpoint,
    limits: LimitCheck,
  ): Promise<CountedRequest> {
    let token = await judgeToken(request, limits);
    let read: ReadBody = NOT_READ;
    if (token.refusal === undefined && endpoint.body) {
      limits.checkRememberedRefusal(token.caller);
      read = await readBody(body, { accepts: endpoint.body, owner: ownerOf(token.user) }).then(
        toReadBody,
        toUnreadableBody,
      );
      if (clock.monotonic() - receivedAt > LATE_MS) token = await judgeToken(request, limits);
    }
    const { caller, user } = token;
    return {
      limits,
      caller,
      sessionId: endpoint.sessionIdOf(request),
      refusal: token.refusal ?? read.refusal,
      run: (session) => endpoint.handle({ request, user, session, body: read.body }),
    };
  }

  async function judgeToken(request: GatewayRequest, limits: LimitCheck): Promise<JudgedToken> {
    try {
      const user = await authenticate(request, limits.countAddress);
      return { caller: { kind: 'admitted', sub: user?.sub }, user, refusal: undefined };
    } catch (thrown) {
      const refusal = toGatewayError(thrown);
      // Of any other failure it is not known whose token this is.
      if (refusal.row.status !== 401) throw refusal;
      return { caller: { kind: 'anonymous' }, user: undefined, refusal };
    }
  }

  /** An endpoint for everybody: counted by the address first, and by all callers where it is valid. */
  async function judgePublic(
    { request, body }: ReceivedRequest,
    endpoint: PublicEndpoint,
    limits: LimitCheck,
  ): Promise<CountedRequest> {
    await limits.countAddress();
    try {
      const read = endpoint.body
        ? await readBody(body, {
            accepts: endpoint.body,
            owner: 'stranger',
            maxBytes: endpoint.maxBodyBytes,
          })
        : NO_BODY;
      const run = await endpoint.judge(request, read);
      return { limits, caller: SOMEBODY, sessionId: undefined, refusal: undefined, run };
    } catch (thrown) {
      await limits.countInvalid();
      throw thrown;
    }
  }
}

const judgeUncounted = (run: PendingReply): UncountedRequest => ({ limits: undefined, run });

interface JudgedToken {
  readonly caller: Caller;
  readonly user: UserContext | undefined;
  readonly refusal: GatewayError | undefined;
}

interface ReadBody {
  readonly body: RequestBody;
  readonly refusal: GatewayError | undefined;
}

const toReadBody = (body: RequestBody): ReadBody => ({ body, refusal: undefined });

const toUnreadableBody = (thrown: unknown): ReadBody => ({
  body: NO_BODY,
  refusal: toGatewayError(thrown),
});

/** Of a request that has none, or whose body is not read. */
const NO_BODY: RequestBody = { type: 'json', value: undefined, text: '', hold: () => () => {} };

const NOT_READ: ReadBody = { body: NO_BODY, refusal: undefined };

/** Nobody in particular, who sent something valid. */
const SOMEBODY: Caller = { kind: 'admitted', sub: undefined };

/** With `AUTH_REQUIRED=false` nobody is a stranger. */
const ownerOf = (user: UserContext | undefined): BodyOwner =>
  user === undefined ? 'anonymous' : { sub: user.sub };
