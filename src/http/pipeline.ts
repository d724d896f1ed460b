// Decisions 2: which refusal wins. Host → origin → preflight → method → limit → token → body
// (admission.ts), then the route. Everything thrown is rendered here, in the route's format.

import type { Endpoint } from '../core/endpoint.ts';
import { renderErrorPage } from '../core/errors/error-page.ts';
import { fail, toGatewayError } from '../core/errors/gateway-error.ts';
import { type ErrorFormat, JSONRPC, renderError } from '../core/errors/render.ts';
import { type GatewayRequest, header, type Reply } from '../core/message.ts';
import type { LimitCheck, Limiter } from '../features/limits/limiter.ts';
import type { Site } from '../features/site/site.ts';
import { prefersHtml } from './accept.ts';
import { type Authenticate, answerCall, answerOAuth } from './admission.ts';
import type { Cors } from './cors.ts';
import type { HostCheck } from './host.ts';
import type { Incoming } from './incoming.ts';
import { checkNavigation } from './navigation.ts';
import { findEndpoint, type Route, type Router } from './router.ts';

/** The reply with every header, and the route's template for log and metrics. */
export interface Outcome {
  readonly reply: Reply;
  readonly route: string;
}

export interface PipelineDeps {
  readonly router: Router;
  readonly site: Site;
  readonly checkHost: HostCheck;
  readonly isAllowedOrigin: (origin: string) => boolean;
  readonly cors: Cors;
  /** Of BASE_URL. */
  readonly ownOrigin: string;
  readonly limiter: Limiter;
  readonly bearer: Authenticate;
  readonly securityHeaders: Readonly<Record<string, string>>;
}

export type Pipeline = (incoming: Incoming) => Promise<Outcome>;

/** What a path leads to. */
interface Target {
  readonly route?: Route;
  readonly page?: Reply;
  /** Value of the label `route`: from a fixed set, whatever callers ask for. */
  readonly label: string;
}

interface Origin {
  readonly value: string | undefined;
  readonly isAllowed: boolean;
}

export function createPipeline(deps: PipelineDeps): Pipeline {
  const { router, site, checkHost, isAllowedOrigin, limiter, bearer, ownOrigin } = deps;

  return async function answer(incoming) {
    const target = targetOf(incoming.request);
    const origin = originOf(incoming.request);
    const reply = await guarded(incoming, target, origin).catch(rendered(JSONRPC));
    const granted = origin.isAllowed && !target.route?.isNavigation;
    const grant = deps.cors(granted ? origin.value : undefined);
    return { reply: completeHeaders(reply, deps.securityHeaders, grant), route: target.label };
  };

  function targetOf(request: GatewayRequest): Target {
    const route = router(request.path);
    if (route) return { route, label: route.path };
    const page = site.find(request.path, header(request, 'if-none-match'));
    return page ? { page, label: '/**' } : { label: 'unmatched' };
  }

  function originOf(request: GatewayRequest): Origin {
    const value = header(request, 'origin');
    return { value, isAllowed: value !== undefined && isAllowedOrigin(value) };
  }

  async function guarded(incoming: Incoming, target: Target, origin: Origin): Promise<Reply> {
    const { request, authority } = incoming;
    checkHost(header(request, 'host'), authority, target.route?.isProbe === true);
    if (origin.value !== undefined && !origin.isAllowed) {
      fail('invalid_origin', { facts: { found: origin.value.slice(0, 200) } });
    }
    if (target.route?.isNavigation) checkNavigation(request, ownOrigin);
    if (request.method === 'OPTIONS') return { status: 204 };
    if (target.route) return answerEndpoint(incoming, findEndpoint(target.route, request.method));
    return target.page ? pageFor(request, target.page) : missing(request);
  }

  function answerEndpoint(incoming: Incoming, endpoint: Endpoint): Promise<Reply> {
    const isPage = endpoint.hasErrorPages && prefersHtml(header(incoming.request, 'accept'));
    const render = (isPage ? renderedAsPage : rendered)(endpoint.errors);
    return limited(incoming, endpoint, render);
  }

  async function limited(incoming: Incoming, endpoint: Endpoint, render: Render): Promise<Reply> {
    const { request } = incoming;
    if (endpoint.kind === 'open') {
      return withHeaders(
        await attempt(() => endpoint.handle(request)).catch(render),
        endpoint.headers,
      );
    }
    let check: LimitCheck | undefined;
    const reply = await attempt(async () => {
      check = limiter(endpoint.limit, request.clientIp);
      return endpoint.kind === 'protected'
        ? answerCall(incoming, endpoint, check, bearer)
        : answerOAuth(incoming, endpoint, check);
    }).catch(render);
    // A refusal by a limit has the headers of that limit.
    const counted = reply.status === 429 ? undefined : check?.headers();
    return withHeaders(reply, { ...endpoint.headers, ...counted });
  }

  function pageFor(request: GatewayRequest, page: Reply): Reply {
    const reads = request.method === 'GET' || request.method === 'HEAD';
    return reads ? page : fail('method_not_allowed', { headers: { Allow: 'GET, HEAD' } });
  }

  function missing(request: GatewayRequest): Reply {
    if (!isDecodable(request.path)) fail('bad_request', { details: 'The path is not valid.' });
    const page = prefersHtml(header(request, 'accept')) ? site.notFoundPage() : undefined;
    return page ?? fail('not_found');
  }
}

type Render = (thrown: unknown) => Reply;

/** What `work` throws at once is a rejection, too. */
const attempt = async (work: () => Reply | Promise<Reply>): Promise<Reply> => work();

const withHeaders = (reply: Reply, headers: Headers | undefined): Reply =>
  headers === undefined ? reply : { ...reply, headers: { ...headers, ...reply.headers } };

const rendered = (format: ErrorFormat) => (thrown: unknown) =>
  renderError(toGatewayError(thrown), format);

type Headers = Readonly<Record<string, string>>;

const renderedAsPage = (format: ErrorFormat) => (thrown: unknown) =>
  renderErrorPage(toGatewayError(thrown), format);

/** Every header at once. Decisions 7: `Vary: Origin` always. */
function completeHeaders(reply: Reply, security: Headers, cors: Headers): Reply {
  const { status, headers, body = '', stream } = reply;
  const vary = headers?.Vary;
  const all: Record<string, string> = { ...security, ...cors, ...headers };
  all.Vary = vary === undefined ? 'Origin' : `Origin, ${vary}`;
  // RFC 9110 §8.6: not on a reply that has no content by its status. A stream's is not known.
  const hasLength = stream === undefined && status !== 204 && status !== 304;
  if (hasLength) all['Content-Length'] = String(Buffer.byteLength(body));
  return { ...reply, headers: all };
}

function isDecodable(path: string): boolean {
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}
