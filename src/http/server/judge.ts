// The first step of a request's way: it is judged without effect, in the order of what is refused
// (§11): Host, origin, method, then what its endpoint asks for.

import type { Runtime } from '../../runtime/runtime.ts';
import type { ChosenLimit, Endpoint, PublicEndpoint } from '../endpoint/endpoint.ts';
import { getHeader, NO_BODY, type PendingReply, type RequestBody } from '../endpoint/message.ts';
import type { LimitCheck } from '../limits/limiter.ts';
import { type CountedCaller, UNAUTHENTICATED } from '../limits/windows.ts';
import {
  CORS_FOR_ALL,
  type CorsHeaderNames,
  checkNavigation,
  checkOrigin,
  checkOwnOrigin,
  createGetPreflightHeaders,
  createHostCheck,
  type RequestOrigin,
} from './headers.ts';
import { type CallerChecks, type CountedRequest, createJudgeProtected } from './judge-protected.ts';
import { createBodyReader, type ReadRequestBody } from './read-body.ts';
import type { ReceivedRequest } from './receive-request.ts';
import { findEndpoint, type RequestDestination, type Router } from './router.ts';
import type { MemoryOwner } from './transfer-memory.ts';

/** A request and what is found out about it on its way. Its body, once read, is not kept here. */
export interface Exchange {
  readonly received: ReceivedRequest;
  readonly destination: RequestDestination;
  readonly origin: RequestOrigin;
  /** From when it is known. */
  endpoint: Endpoint | undefined;
  /** From when a limit has looked at the request. */
  limits: LimitCheck | undefined;
  /** The owner of the memory that the reply takes; once it was judged. */
  owner: MemoryOwner;
}

/** The result of judging a request. */
export type JudgedExchange = UncountedRequest | CountedRequest;

interface UncountedRequest {
  readonly limits: undefined;
  readonly run: PendingReply;
}

export function createJudgeRequest(
  runtime: Runtime,
  router: Router,
  checks: CallerChecks,
  corsHeaders: CorsHeaderNames,
) {
  const { limiter } = checks;
  const checkHost = createHostCheck(runtime.config);
  const { origin: ownOrigin } = new URL(runtime.config.server.baseUrl);
  const getPreflightHeaders = createGetPreflightHeaders(corsHeaders);
  const readBody = createBodyReader(runtime);
  const judgeProtected = createJudgeProtected(runtime.clock, checks, readBody);

  /**
   * A promise only where there is something to wait for: a key, the rest of a body, what a login needs.
   *
   * @throws GatewayError for what is refused whatever the limits say, at once or by the promise.
   */
  return function judge(exchange: Exchange): JudgedExchange | Promise<JudgedExchange> {
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
    return judgePublic(received, endpoint, readBody, ({ group, login }) => {
      const limits = limiter.startCheck(group, request.clientIp, login);
      exchange.limits = limits;
      return limits;
    });
  };
}

const toUncounted = (run: PendingReply): UncountedRequest => ({ limits: undefined, run });

/**
 * Judges what was sent to a limited endpoint for everybody: counted by its address first, so that
 * judging cannot be asked for without end.
 *
 * @throws GatewayError for what is not valid, which is counted apart; what `startCheck` throws while a refusal of the address
 * is remembered.
 */
async function judgePublic(
  { request, body }: ReceivedRequest,
  endpoint: PublicEndpoint,
  readBody: ReadRequestBody,
  startCheck: (chosen: ChosenLimit) => LimitCheck,
): Promise<CountedRequest> {
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
}

/** Whoever sent something valid: users are not known here. */
const SOMEBODY: CountedCaller = { kind: 'admitted', user: undefined };
