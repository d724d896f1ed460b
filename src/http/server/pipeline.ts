// The way of every request (§11): it is judged, admitted and run, and its reply is completed. To
// judge has no effect; refusals come in this order: limits, token, body.

import { fail, toGatewayError } from '../../errors/gateway-error.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { isMissingGrant } from '../../store/store.ts';
import { readTraceContext } from '../../telemetry/tracing/tracing.ts';
import type { Endpoint, PublicEndpoint } from '../endpoint/endpoint.ts';
import { getHeader, NO_BODY, type PendingReply, type Reply } from '../endpoint/message.ts';
import { JSONRPC, renderError, renderErrorPage } from '../endpoint/render-error.ts';
import type { AdmittedCall, LimitCheck } from '../limits/limiter.ts';
import { type CountedCaller, UNAUTHENTICATED } from '../limits/windows.ts';
import {
  CORS_FOR_ALL,
  type CorsHeaderNames,
  checkNavigation,
  checkOrigin,
  checkOwnOrigin,
  createHostCheck,
  createListHeaders,
  createReadOrigin,
  type HeaderList,
  type RequestOrigin,
  renderPreflightHeaders,
} from './headers.ts';
import { type CallerChecks, type CountedRequest, createJudgeProtected } from './judge-protected.ts';
import type { RunQueue } from './overload.ts';
import { createBodyReader } from './read-body.ts';
import type { ReceivedRequest } from './receive-request.ts';
import { findEndpoint, prefersHtml, type RequestDestination, type Router } from './router.ts';
import type { MemoryOwner } from './transfer-memory.ts';

/** Nothing fails: what was thrown is a reply, too. */
export type Pipeline = (received: ReceivedRequest) => Promise<RoutedReply>;

/** The reply, every header that is sent with it, and the route's template for log and metrics. */
export interface RoutedReply {
  readonly reply: Reply;
  readonly headers: HeaderList;
  readonly route: string;
  readonly owner?: MemoryOwner;
}

/** A request and what is found out about it on its way. Its body, once read, is not kept here while the call runs. */
interface Exchange {
  readonly received: ReceivedRequest;
  readonly destination: RequestDestination;
  readonly origin: RequestOrigin;
  /** From when it is known. */
  endpoint: Endpoint | undefined;
  /** From when a limit has looked at the request. */
  limits: LimitCheck | undefined;
  /** From when it was judged until it runs. */
  judged: JudgedExchange;
  /** The owner of the memory that the reply takes; once it was judged. */
  owner: MemoryOwner;
}

/** The result of judging a request. */
type JudgedExchange = UncountedRequest | CountedRequest;

interface UncountedRequest {
  readonly limits: undefined;
  readonly run: PendingReply;
}

/** Before a request was judged, and once it runs. */
const NOTHING_JUDGED: UncountedRequest = { limits: undefined, run: () => fail('internal_error') };

export function createPipeline(
  runtime: Runtime,
  router: Router,
  checks: CallerChecks,
  corsHeaders: CorsHeaderNames,
  runQueue: RunQueue,
): Pipeline {
  const { config, tracing } = runtime;
  const { limiter } = checks;
  const readOrigin = createReadOrigin(config);
  const checkHost = createHostCheck(config);
  const { origin: ownOrigin } = new URL(config.server.baseUrl);
  const readBody = createBodyReader(runtime);
  const judgeProtected = createJudgeProtected(runtime.clock, checks, readBody);
  const listHeaders = createListHeaders(config.server, corsHeaders);

  /** Judges, admits and runs a request; each step goes on or throws. */
  return async function handle(incoming) {
    const received = startTrace(incoming);
    const { request } = received;
    const exchange: Exchange = {
      received,
      destination: router.findDestination(request),
      origin: readOrigin(request),
      endpoint: undefined,
      limits: undefined,
      judged: NOTHING_JUDGED,
      owner: 'unauthenticated',
    };
    let reply: Reply;
    try {
      exchange.judged = await judge(exchange);
      const { trace } = request;
      reply = await (trace ? trace.run(() => admitAndRun(exchange)) : admitAndRun(exchange));
    } catch (thrown) {
      reply = renderThrown(thrown, exchange, router);
    }
    return completeReply(reply, exchange);
  };

  /**
   * §21.2. Probes have none, and so nothing below one: they come every few seconds, and would fill the traces of a quiet
   * gateway.
   */
  function startTrace(received: ReceivedRequest) {
    const { request } = received;
    if (tracing === undefined || router.isProbe(request.path)) return received;
    const trace = tracing.startRequest(readTraceContext(request.headers));
    return { ...received, request: { ...request, trace } };
  }

  /**
   * The first step: it is judged without effect, in the order of what is refused (§11): Host, origin, method, then what
   * its endpoint asks for.
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
      const headers = route?.isForAllOrigins
        ? CORS_FOR_ALL
        : renderPreflightHeaders(request, corsHeaders);
      return { limits: undefined, run: () => ({ status: 204, headers }) };
    }
    if (route === undefined)
      return { limits: undefined, run: () => router.servePage(request, destination) };
    const endpoint = findEndpoint(route, request.method);
    exchange.endpoint = endpoint;
    if (endpoint.kind === 'open') return { limits: undefined, run: () => endpoint.handle(request) };
    if (endpoint.kind === 'public') return judgePublic(exchange, endpoint);
    endpoint.checkOffered?.(request);
    const limits = limiter.startCheck(endpoint.limit, request.clientIp);
    exchange.limits = limits;
    return judgeProtected(received, endpoint, limits);
  }

  /**
   * Judges what was sent to a limited endpoint for everybody: counted by its address first, so that
   * judging cannot be asked for without end.
   *
   * @throws GatewayError for what is not valid, which is counted apart; and while a refusal of the address is remembered.
   */
  async function judgePublic(
    exchange: Exchange,
    endpoint: PublicEndpoint,
  ): Promise<CountedRequest> {
    const { request, body } = exchange.received;
    const { body: accepts, maxBodyBytes: maxBytes } = endpoint;
    const read = async () =>
      accepts ? readBody(body, { accepts, owner: 'unauthenticated', maxBytes }) : NO_BODY;

    const reading = endpoint.chooseLimit && read();
    const early = await reading?.catch(() => undefined);
    const chosen = early && endpoint.chooseLimit?.(early, request);
    const group = chosen?.group ?? endpoint.limit;
    const limits = limiter.startCheck(group, request.clientIp, chosen?.login);
    exchange.limits = limits;
    await limits.countAddress();
    try {
      const accepted = await (reading ?? read());
      const judgeNow = () => endpoint.judge(request, accepted);
      const judged = await (request.trace ? request.trace.run(judgeNow) : judgeNow());
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

  /** @throws GatewayError of a limit, or of what was judged to be refused, at once or by the promise. */
  function admitAndRun(exchange: Exchange): Reply | Promise<Reply> {
    const { judged } = exchange;
    // Whoever waits for the reply does not keep the body.
    exchange.judged = NOTHING_JUDGED;
    if (judged.limits === undefined) return judged.run();
    const { limits, caller } = judged;
    if (caller.kind === 'admitted')
      exchange.owner = caller.user === undefined ? 'authDisabled' : { user: caller.user };
    const admitted = limits.admit(judged);
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
      const run = () => judged.run(session, grant);
      // It may wait, and run when another request says so.
      return runQueue.run(tracing ? tracing.bind(run) : run);
    }
    // The login was ended: counted, and refused, as any caller without a valid token is.
    exchange.owner = 'unauthenticated';
    const refused = { caller: UNAUTHENTICATED, access: undefined, grantKey: undefined };
    const counting = Promise.resolve(judged.limits.admit(refused));
    return counting.then(() => judged.run(session, grant));
  }

  function completeReply(
    reply: Reply,
    { received, destination, origin, endpoint, limits, owner }: Exchange,
  ): RoutedReply {
    const { trace } = received.request;
    const { route } = destination;
    const isClosed = route?.isNavigation === true || route?.isForOwnPages === true;
    const isGranted = origin.isAllowed && !isClosed && !route?.isForAllOrigins;
    // A refusal by a limit has the headers of that limit.
    const limitHeaders = reply.status === 429 ? undefined : limits?.headers();
    const grantedOrigin = isGranted ? origin.value : undefined;
    const headers = listHeaders(reply, endpoint, grantedOrigin, limitHeaders);
    // Some replies are the same object for many requests.
    return { reply: trace ? { ...reply, trace } : reply, headers, route: destination.label, owner };
  }
}

/** Whoever sent something valid: users are not known here. */
const SOMEBODY: CountedCaller = { kind: 'admitted', user: undefined };

/** As the endpoint speaks of errors. */
function renderThrown(
  thrown: unknown,
  { received, endpoint }: Exchange,
  { findFrontPage }: Router,
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
