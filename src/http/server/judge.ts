// The first step of a request's way: it is judged without effect, in the order of what is refused
// (§11): Host, origin, method, then what its endpoint asks for.

import { type GatewayError, toGatewayError } from '../../errors/gateway-error.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { nameOwner } from '../../store/owner.ts';
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
  readBearerToken,
  type UserContext,
} from '../endpoint/message.ts';
import type { LimitCheck, Limiter } from '../limits/limiter.ts';
import { type CountedCaller, UNAUTHENTICATED } from '../limits/windows.ts';
import type { CountedRequest, Exchange, JudgedRequest, UncountedRequest } from './exchange.ts';
import { createRunGrantedCall, type TokenChecks } from './granted-call.ts';
import {
  CORS_FOR_ALL,
  type CorsHeaderNames,
  checkNavigation,
  checkOrigin,
  checkOwnOrigin,
  createGetPreflightHeaders,
  createHostCheck,
} from './host-and-origin.ts';
import { createBodyReader, type ReadRequestBody } from './read-body.ts';
import type { ReceivedRequest } from './receive-request.ts';
import { findEndpoint, type Router } from './router.ts';
import type { MemoryOwner } from './transfer-memory.ts';

/** By what all callers are let in. */
export interface CallerChecks extends TokenChecks {
  readonly limiter: Limiter;
}

/**
 * A promise only where there is something to wait for: a key, the rest of a body, what a login needs.
 *
 * @throws GatewayError for what is refused whatever the limits say, at once or by the promise.
 */
type Judge = (exchange: Exchange) => JudgedRequest | Promise<JudgedRequest>;

export function createJudgeRequest(
  runtime: Runtime,
  router: Router,
  { limiter, ...checks }: CallerChecks,
  corsHeaders: CorsHeaderNames,
): Judge {
  const checkHost = createHostCheck(runtime.config);
  const { origin: ownOrigin } = new URL(runtime.config.server.baseUrl);
  const getPreflightHeaders = createGetPreflightHeaders(corsHeaders);
  const readBody = createBodyReader(runtime);
  const judgeProtected = createJudgeProtected(runtime.clock, checks, readBody);
  const judgePublic = createJudgePublic(readBody);

  return function judge(exchange) {
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

/** @throws GatewayError where it is not known who calls, and while a limit is known to refuse, at once or by the promise. */
type JudgeProtected = (
  received: ReceivedRequest,
  endpoint: ProtectedEndpoint,
  limits: LimitCheck,
) => CountedRequest | Promise<CountedRequest>;

/** A request whose token was looked at. */
interface TokenCheckedRequest {
  readonly received: ReceivedRequest;
  readonly endpoint: ProtectedEndpoint;
  readonly limits: LimitCheck;
  readonly token: JudgedToken;
}

/** While a body took so long, in milliseconds, its token may have expired. */
const LATE_MS = 1000;

function createJudgeProtected(
  clock: Clock,
  checks: TokenChecks,
  readBody: ReadRequestBody,
): JudgeProtected {
  const { authenticate, noteRefusedToken } = checks;

  return function judgeProtected(received, endpoint, limits) {
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

  /** By the token as it is now that the body is there. */
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
    const run = runGranted({ endpoint, call, user, judged, bodyRefusal });
    return { limits, caller, access, grantKey: user.grant.key, run };
  }

  function runGranted({ endpoint, call, user, judged, bodyRefusal }: GrantedMessage) {
    const judgeAgain = (fresh: UserContext) =>
      judgeCall(endpoint, { ...call, user: fresh }, bodyRefusal);
    return createRunGrantedCall(checks, { request: call.request, user, judged, judgeAgain });
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
}

interface GrantedMessage {
  readonly endpoint: ProtectedEndpoint;
  readonly call: ProtectedCall;
  readonly user: UserContext;
  readonly judged: JudgedCall;
  readonly bodyRefusal: unknown;
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
  readonly caller: CountedCaller;
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

/** Without a user here, nobody has to log in. */
const findBodyOwner = (user: UserContext | undefined): MemoryOwner =>
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

const createJudgePublic = (readBody: ReadRequestBody): JudgePublic =>
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
      const judged = await endpoint.judge(request, read);
      return {
        limits,
        access: undefined,
        grantKey: undefined,
        ...('runAnonymous' in judged
          ? { caller: UNAUTHENTICATED, run: judged.runAnonymous }
          : { caller: SOMEBODY, run: judged }),
      };
    } catch (thrown) {
      await limits.countInvalid();
      throw thrown;
    }
  };

/** Whoever sent something valid: users are not known here. */
const SOMEBODY: CountedCaller = { kind: 'admitted', user: undefined };
