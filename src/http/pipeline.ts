// The way of every request (§11): it is judged, admitted and run, and its reply is completed. To
// judge has no effect; refusals come in this order: limits, token, body.
import { renderErrorPage } from '../core/errors/error-page.ts';
import { toGatewayError } from '../core/errors/gateway-error.ts';
import { JSONRPC, renderError } from '../core/errors/render.ts';
import { getHeader, type PendingReply, type Reply, type ReplyHeaders } from '../core/message.ts';
import { prefersHtml } from './accept.ts';
import type { GetCorsHeaders } from './cors.ts';
import type { Exchange, JudgedRequest } from './exchange.ts';
import { createJudge, type JudgeDeps } from './judge.ts';
import { type IsAllowedOrigin, readOrigin } from './origin-check.ts';
import type { ReceivedRequest } from './receive-request.ts';

export interface PipelineDeps extends JudgeDeps {
  readonly isAllowedOrigin: IsAllowedOrigin;
  readonly getCorsHeaders: GetCorsHeaders;
  readonly securityHeaders: ReplyHeaders;
}

export type Pipeline = (received: ReceivedRequest) => Promise<RoutedReply>;

/** The reply with every header, and the route's template for log and metrics. */
export interface RoutedReply {
  readonly reply: Reply;
  readonly route: string;
}

export function createPipeline(deps: PipelineDeps): Pipeline {
  const { router, isAllowedOrigin, getCorsHeaders, securityHeaders } = deps;
  const judge = createJudge(deps);

  // A chain in place of one async function: that would keep the body for as long as the call runs.
  return function runPipeline(received) {
    const exchange: Exchange = {
      received,
      destination: router.findDestination(received.request),
      origin: readOrigin(received.request, isAllowedOrigin),
      endpoint: undefined,
      limits: undefined,
    };
    return judge(exchange)
      .then(admit)
      .then((run) => run())
      .catch((thrown: unknown) => renderThrown(thrown, exchange))
      .then((reply) => completeReply(reply, exchange));
  };

  function completeReply(
    reply: Reply,
    { destination, origin, endpoint, limits }: Exchange,
  ): RoutedReply {
    const isGranted = origin.isAllowed && !destination.route?.isNavigation;
    const headers = {
      ...securityHeaders,
      ...getCorsHeaders(isGranted ? origin.value : undefined),
      ...endpoint?.headers,
      // A refusal by a limit has the headers of that limit.
      ...(reply.status === 429 ? undefined : limits?.headers()),
      ...reply.headers,
    };
    return {
      reply: { ...reply, headers: completeHeaders(headers, reply) },
      route: destination.label,
    };
  }
}

/** Counts the request; what is then left to do. @throws GatewayError of a limit, or the refusal. */
async function admit(judged: JudgedRequest): Promise<PendingReply> {
  if (judged.limits === undefined) return judged.run;
  const { limits, caller, sessionId, refusal } = judged;
  const session = await limits.admitAndReadSession(caller, sessionId);
  if (refusal !== undefined) throw refusal;
  return () => judged.run(session);
}

/** As the endpoint speaks of errors. */
function renderThrown(thrown: unknown, { received, endpoint }: Exchange): Reply {
  const error = toGatewayError(thrown);
  const format = endpoint?.errors ?? JSONRPC;
  const isPage = endpoint?.hasErrorPages && prefersHtml(getHeader(received.request, 'accept'));
  return isPage ? renderErrorPage(error, format) : renderError(error, format);
}

function completeHeaders(
  headers: Record<string, string>,
  { status, headers: ownHeaders, body = '', stream }: Reply,
): ReplyHeaders {
  const vary = ownHeaders?.Vary;
  headers.Vary = vary === undefined ? 'Origin' : `Origin, ${vary}`;
  // RFC 9110 §8.6: not on a reply that has no content by its status. A stream's is not known.
  const hasLength = stream === undefined && status !== 204 && status !== 304;
  if (hasLength) headers['Content-Length'] = String(Buffer.byteLength(body));
  return headers;
}
