// The way of every request (§11): it is judged, admitted and run, and its reply is completed. To
// judge has no effect; refusals come in this order: limits, token, body.

import { toGatewayError } from '../../errors/gateway-error.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { isMissingGrant } from '../../store/store.ts';
import { getHeader, type Reply } from '../endpoint/message.ts';
import { JSONRPC, renderError, renderErrorPage } from '../endpoint/render-error.ts';
import type { AdmittedCall } from '../limits/limiter.ts';
import { UNAUTHENTICATED } from '../limits/windows.ts';
import {
  type CorsHeaderNames,
  createIsAllowedOrigin,
  createListHeaders,
  type HeaderList,
  readOrigin,
} from './headers.ts';
import { createJudgeRequest, type Exchange, type JudgedExchange } from './judge.ts';
import type { CallerChecks, CountedRequest } from './judge-protected.ts';
import type { RunQueue } from './overload.ts';
import type { ReceivedRequest } from './receive-request.ts';
import { prefersHtml, type Router } from './router.ts';
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

export function createPipeline(
  runtime: Runtime,
  router: Router,
  checks: CallerChecks,
  { corsHeaders, runQueue }: { readonly corsHeaders: CorsHeaderNames; readonly runQueue: RunQueue },
): Pipeline {
  const { config } = runtime;
  const isAllowedOrigin = createIsAllowedOrigin(config);
  const judge = createJudgeRequest(runtime, router, checks, corsHeaders);
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
