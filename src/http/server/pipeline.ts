// The way of every request (§11): it is judged, admitted and run, and its reply is completed. To
// judge has no effect; refusals come in this order: limits, token, body.

import { toGatewayError } from '../../errors/gateway-error.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { isMissingGrant } from '../../store/store.ts';
import type { ChosenLimit, Endpoint, PublicEndpoint } from '../endpoint/endpoint.ts';
import {
  getHeader,
  NO_BODY,
  type PendingReply,
  type Reply,
  type RequestBody,
} from '../endpoint/message.ts';
import { JSONRPC, renderError, renderErrorPage } from '../endpoint/render-error.ts';
import type { AdmittedCall, LimitCheck } from '../limits/limiter.ts';
import { type CountedCaller, UNAUTHENTICATED } from '../limits/windows.ts';
import {
  CORS_FOR_ALL,
  type CorsHeaderNames,
  checkNavigation,
  checkOrigin,
  checkOwnOrigin,
  createGetPreflightHeaders,
  createHostCheck,
  createIsAllowedOrigin,
  createListHeaders,
  type HeaderList,
  type RequestOrigin,
  readOrigin,
} from './headers.ts';
import { type CallerChecks, type CountedRequest, createJudgeProtected } from './judge-protected.ts';
import type { RunQueue } from './overload.ts';
import { createBodyReader, type ReadRequestBody } from './read-body.ts';
import type { ReceivedRequest } from './receive-request.ts';
import { findEndpoint, prefersHtml, type RequestDestination, type Router } from './router.ts';
import type { MemoryOwner } from './transfer-memory.ts';

/** A promise only where there is something to wait for. Nothing fails: what was thrown is a reply, too. */
export type Pipeline = (received: ReceivedRequest) => RoutedReply | Promise<RoutedReply>;

/** The reply, every header that is sent with it, and the route's template for log and metrics. */
export interface RoutedReply {
  readonly reply: Reply;
  readonly headers: HeaderList;
  readonly route: string;
  readonly owner?: MemoryOwner;
}

/** A request and what is found out about it on its way. Its body, once read, is not kept here. */
interface Exchange {
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
type JudgedExchange = UncountedRequest | CountedRequest;

interface UncountedRequest {
  readonly limits: undefined;
  readonly run: PendingReply;
}

export function createPipeline(
  runtime: Runtime,
  router: Router,
  checks: CallerChecks,
  { corsHeaders, runQueue }: { readonly corsHeaders: CorsHeaderNames; readonly runQueue: RunQueue },
): Pipeline {
  const { config } = runtime;
  const { limiter } = checks;
  const isAllowedOrigin = createIsAllowedOrigin(config);
  const checkHost = createHostCheck(config);
  const { origin: ownOrigin } = new URL(config.server.baseUrl);
  const getPreflightHeaders = createGetPreflightHeaders(corsHeaders);
  const readBody = createBodyReader(runtime);
  const judgeProtected = createJudgeProtected(runtime.clock, checks, readBody);
  const listHeaders = createListHeaders(config.server, corsHeaders);

  // No async function, and each step a function of its own: what a step knows, such as the body, is not kept while the
  // call runs.
  return function runPipeline(received) {
    const exchange: Exchange = {
      received,
      destination: router.findDestination(received.request),
      origin: readOrigin(received.request, isAllowedOrigin),
      endpoint: undefined,
      limits: undefined,
      owner: 'unauthenticated',
    };
    const reply = judgeAndRun(exchange);
    return reply instanceof Promise
      ? reply.then(
          (ready) => completeReply(ready, exchange),
          (thrown: unknown) => completeReply(renderThrown(thrown, exchange, router), exchange),
        )
      : completeReply(reply, exchange);
  };

  /** An error that is thrown at once is a reply; a later one is a rejection. */
  function judgeAndRun(exchange: Exchange): Reply | Promise<Reply> {
    try {
      const judged = judge(exchange);
      return judged instanceof Promise
        ? judged.then((ready) => runTraced(ready, exchange))
        : runTraced(judged, exchange);
    } catch (thrown) {
      return renderThrown(thrown, exchange, router);
    }
  }

  /**
   * The first step: it is judged without effect, in the order of what is refused (§11): Host, origin, method, then what
   * its endpoint asks for. A promise only where there is something to wait for: a key, the rest of a body, what a login needs.
   *
   * @throws GatewayError for what is refused whatever the limits say, at once or by the promise.
   */
  function judge(exchange: Exchange): JudgedExchange | Promise<JudgedExchange> {
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
  }

  function runTraced(judged: JudgedExchange, exchange: Exchange): Reply | Promise<Reply> {
    exchange.owner = findOwner(judged);
    const { trace } = exchange.received.request;
    return trace ? trace.run(() => admitAndRun(judged, exchange)) : admitAndRun(judged, exchange);
  }

  /** @throws GatewayError of a limit, or of what was judged to be refused, at once or by the promise. */
  function admitAndRun(judged: JudgedExchange, exchange: Exchange): Reply | Promise<Reply> {
    const { limits } = judged;
    if (limits === undefined) return judged.run();
    const admitted = limits.admit(judged.caller, judged.access, judged.grantKey);
    return admitted instanceof Promise
      ? admitted.then((known) => runAdmitted(judged, known, exchange))
      : runAdmitted(judged, admitted, exchange);
  }

  function runAdmitted(
    judged: CountedRequest,
    { session, grant }: AdmittedCall,
    exchange: Exchange,
  ): Reply | Promise<Reply> {
    if (judged.grantKey === undefined || !isMissingGrant(grant)) {
      return runQueue.run(() => judged.run(session, grant));
    }
    // The login was ended: counted, and refused, as any caller without a valid token is.
    exchange.owner = 'unauthenticated';
    const counted = judged.limits.admit(UNAUTHENTICATED, undefined, undefined);
    return counted instanceof Promise
      ? counted.then(() => judged.run(session, grant))
      : judged.run(session, grant);
  }

  function completeReply(
    reply: Reply,
    { destination, origin, endpoint, limits, owner }: Exchange,
  ): RoutedReply {
    const { route } = destination;
    const isClosed = route?.isNavigation === true || route?.isForOwnPages === true;
    const isGranted = origin.isAllowed && !isClosed && !route?.isForAllOrigins;
    const headers = listHeaders({
      reply,
      endpoint,
      grantedOrigin: isGranted ? origin.value : undefined,
      // A refusal by a limit has the headers of that limit.
      limitHeaders: reply.status === 429 ? undefined : limits?.headers(),
    });
    return { reply, headers, route: destination.label, owner };
  }
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

function findOwner(judged: JudgedExchange): MemoryOwner {
  if (judged.limits === undefined || judged.caller.kind !== 'admitted') return 'unauthenticated';
  const { user } = judged.caller;
  return user === undefined ? 'authDisabled' : { user };
}

/** As the endpoint speaks of errors. */
function renderThrown(
  thrown: unknown,
  { received, endpoint }: Exchange,
  { findFrontPage }: Pick<Router, 'findFrontPage'>,
): Reply {
  const error = toGatewayError(thrown);
  const frontPage = endpoint?.hasFrontPage && findFrontPage(received.request, error);
  if (frontPage) return frontPage;
  const format = endpoint?.errors ?? JSONRPC;
  const isPage = endpoint?.hasErrorPages && prefersHtml(getHeader(received.request, 'accept'));
  return isPage
    ? renderErrorPage(error, format, endpoint?.isPageOfUser !== true)
    : renderError(error, format);
}
