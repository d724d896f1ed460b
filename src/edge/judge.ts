// The first step of a request's way: it is judged without effect, in the order of what is refused
// (§11): Host, origin, method, then what its endpoint asks for.

import type {
  ChosenLimit,
  JudgedCall,
  ProtectedCall,
  ProtectedEndpoint,
  PublicEndpoint,
} from '../endpoint/endpoint.ts';
import {
  type GatewayRequest,
  getHeader,
  NO_BODY,
  type PendingReply,
  type RequestBody,
  type UserContext,
} from '../endpoint/message.ts';
import { type GatewayError, toGatewayError } from '../errors/gateway-error.ts';
import type { Clock } from '../platform/clock.ts';
import { nameOwner } from '../store/owner.ts';
import type { BodyOwner } from './body-memory.ts';
import type { CountedRequest, Exchange, JudgedRequest, UncountedRequest } from './exchange.ts';
import { createRunGrantedCall, type GrantedCallDeps } from './granted-call.ts';
import {
  CORS_FOR_ALL,
  checkNavigation,
  checkOrigin,
  checkOwnOrigin,
  type GetPreflightHeaders,
  type HostCheck,
} from './host-and-origin.ts';
import type { LimitCheck, Limiter } from './limits/limiter.ts';
import { type Caller, UNAUTHENTICATED } from './limits/windows.ts';
import type { BodyReader } from './read-body.ts';
import type { ReceivedRequest } from './receive-request.ts';
import { findEndpoint, type Router } from './router.ts';

export interface JudgeDeps extends JudgeProtectedDeps {
  readonly router: Router;
  readonly checkHost: HostCheck;
  /** Of BASE_URL. */
  readonly ownOrigin: string;
  readonly limiter: Limiter;
  readonly getPreflightHeaders: GetPreflightHeaders;
}

/** @throws GatewayError for what is refused whatever the limits say. */
type Judge = (exchange: Exchange) => Promise<JudgedRequest>;

export function createJudge(deps: JudgeDeps): Judge {
  const { router, checkHost, ownOrigin, limiter, getPreflightHeaders } = deps;
  const judgeProtected = createJudgeProtected(deps);
  const judgePublic = createJudgePublic(deps.readBody);

  return async function judge(exchange) {
    const { received, destination, origin } = exchange;
    const { request, authority } = received;
    const { route } = destination;
    checkHost(getHeader(request, 'host'), authority, route?.isProbe === true);
    if (!route?.isForAllOrigins) checkOrigin(origin);
    if (route?.isNavigation) checkNavigation(request, ownOrigin);
    if (route?.isForOwnPages) checkOwnOrigin(origin, ownOrigin);
    if (request.method === 'OPTIONS') {
      const headers = route?.isForAllOrigins ? CORS_FOR_ALL : getPreflightHeaders(request);
      return toUncounted(() => ({ status: 204, headers }));
    }
    if (route === undefined) return toUncounted(() => router.servePage(request, destination));

    const endpoint = findEndpoint(route, request.method);
    exchange.endpoint = endpoint;
    if (endpoint.kind === 'open') return toUncounted(() => endpoint.handle(request));
    if (endpoint.kind === 'protected') {
      endpoint.checkOffered?.(request);
      const limits = limiter.startCheck(endpoint.limit, request.clientIp);
      exchange.limits = limits;
      return judgeProtected(received, endpoint, limits);
    }
    return judgePublic(received, endpoint, ({ group, login }) => {
      const limits = limiter.startCheck(group, request.clientIp, login);
      exchange.limits = limits;
      return limits;
    });
  };
}

const toUncounted = (run: PendingReply): UncountedRequest => ({ limits: undefined, run });

// Judges a call of an endpoint that needs a token: the token decides which windows count the call, so it
// comes first, and a body is read only behind a valid one.

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

interface JudgeProtectedDeps extends GrantedCallDeps {
  readonly authenticate: Authenticate;
  readonly readBody: BodyReader;
  readonly clock: Clock;
}

/** @throws GatewayError where it is not known who calls, and while a limit is known to refuse. */
type JudgeProtected = (
  received: ReceivedRequest,
  endpoint: ProtectedEndpoint,
  limits: LimitCheck,
) => Promise<CountedRequest>;

/** While a body took so long, in milliseconds, its token may have expired. */
const LATE_MS = 1000;

function createJudgeProtected(deps: JudgeProtectedDeps): JudgeProtected {
  const { authenticate, readBody, clock } = deps;

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
    const { caller, user, refusal } = token;
    if (refusal !== undefined) return refuse(limits, caller, refusal);
    const call = { request, user, body: readableBody };
    const judged = judgeCall(endpoint, call, bodyRefusal);
    const { access } = judged;
    if (user?.grant === undefined) {
      return { limits, caller, access, grantKey: undefined, run: judged.run };
    }
    const judgeAgain = (fresh: UserContext) =>
      judgeCall(endpoint, { ...call, user: fresh }, bodyRefusal);
    const run = createRunGrantedCall(deps, { request, user, judged, judgeAgain });
    return { limits, caller, access, grantKey: user.grant.key, run };
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
  // Of any other failure it is not known whose token this is.
  if (refusal.row.status !== 401) throw refusal;
  return { caller: UNAUTHENTICATED, user: undefined, refusal };
}

interface JudgedToken {
  readonly caller: Caller;
  readonly user: UserContext | undefined;
  readonly refusal: GatewayError | undefined;
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

/** Counted like any other, and refused once no limit does so first. */
const refuse = (limits: LimitCheck, caller: Caller, refusal: unknown): CountedRequest => ({
  limits,
  caller,
  grantKey: undefined,
  ...refuseCall(refusal),
});

/** Without a user here, nobody has to log in. */
const findBodyOwner = (user: UserContext | undefined): BodyOwner =>
  user === undefined ? 'authDisabled' : { user: nameOwner(user) };

// Judges what was sent to a limited endpoint for everybody: counted by its address first, so that
// judging cannot be asked for without end.

/** @throws GatewayError while a refusal of the address is remembered. */
type StartCheck = (chosen: ChosenLimit) => LimitCheck;

/** @throws GatewayError for what is not valid, which is counted apart. */
type JudgePublic = (
  received: ReceivedRequest,
  endpoint: PublicEndpoint,
  startCheck: StartCheck,
) => Promise<CountedRequest>;

const createJudgePublic = (readBody: BodyReader): JudgePublic =>
  async function judgePublic({ request, body }, endpoint, startCheck) {
    async function readAcceptedBody(): Promise<RequestBody> {
      const { body: accepts, maxBodyBytes: maxBytes } = endpoint;
      return accepts ? readBody(body, { accepts, owner: 'unauthenticated', maxBytes }) : NO_BODY;
    }

    const reading = endpoint.chooseLimit && readAcceptedBody();
    const early = await reading?.catch(() => undefined);
    const limits = startCheck(
      (early && endpoint.chooseLimit?.(early, request)) ?? { group: endpoint.limit },
    );
    await limits.countAddress();
    try {
      const read = await (reading ?? readAcceptedBody());
      const run = await endpoint.judge(request, read);
      return { limits, caller: SOMEBODY, access: undefined, grantKey: undefined, run };
    } catch (thrown) {
      await limits.countInvalid();
      throw thrown;
    }
  };

/** Whoever sent something valid: users are not known here. */
const SOMEBODY: Caller = { kind: 'admitted', user: undefined };
