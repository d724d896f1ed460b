// Decisions 2: which refusal wins. Host → origin → preflight → method → limit → token → body
// (admission.ts), then the route. Everything thrown is rendered here, in the route's format.

import { renderErrorPage } from '../core/errors/error-page.ts';
import { asGatewayError, fail } from '../core/errors/gateway-error.ts';
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
import { type Resource, type Router, routeFor } from './router.ts';
import type { Route } from './routes.ts';

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
  readonly resource?: Resource;
  readonly page?: Reply;
  /** Value of the label `route`: from a fixed set, whatever callers ask for. */
  readonly route: string;
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
    const granted = origin.isAllowed && !target.resource?.navigation;
    const grant = deps.cors(granted ? origin.value : undefined);
    return { reply: completeHeaders(reply, deps.securityHeaders, grant), route: target.route };
  };

  function targetOf(request: GatewayRequest): Target {
    const resource = router(request.path);
    if (resource) return { resource, route: resource.path };
    const page = site.find(request.path, header(request, 'if-none-match'));
    return page ? { page, route: '/**' } : { route: 'unmatched' };
  }

  function originOf(request: GatewayRequest): Origin {
    const value = header(request, 'origin');
    return { value, isAllowed: value !== undefined && isAllowedOrigin(value) };
  }

  async function guarded(incoming: Incoming, target: Target, origin: Origin): Promise<Reply> {
    const { request, authority } = incoming;
    checkHost(header(request, 'host'), authority, target.resource?.probe === true);
    if (origin.value !== undefined && !origin.isAllowed) {
      fail('invalid_origin', { facts: { found: origin.value.slice(0, 200) } });
    }
    if (target.resource?.navigation) checkNavigation(request, ownOrigin);
    if (request.method === 'OPTIONS') return { status: 204 };
    if (target.resource) return answerRoute(incoming, routeFor(target.resource, request.method));
    return target.page ? pageFor(request, target.page) : missing(request);
  }

  function answerRoute(incoming: Incoming, route: Route): Promise<Reply> {
    const isPage = route.pages && prefersHtml(header(incoming.request, 'accept'));
    const render = (isPage ? renderedAsPage : rendered)(route.errors);
    return limited(incoming, route, render);
  }

  async function limited(incoming: Incoming, route: Route, render: Render): Promise<Reply> {
    const { request } = incoming;
    if (route.kind === 'open') {
      return withHeaders(await attempt(() => route.handle(request)).catch(render), route.headers);
    }
    let check: LimitCheck | undefined;
    const reply = await attempt(async () => {
      check = limiter(route.limit, request.clientIp);
      return route.kind === 'call'
        ? answerCall(incoming, route, check, bearer)
        : answerOAuth(incoming, route, check);
    }).catch(render);
    // A refusal by a limit has the headers of that limit.
    const counted = reply.status === 429 ? undefined : check?.headers();
    return withHeaders(reply, { ...route.headers, ...counted });
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
  renderError(asGatewayError(thrown), format);

type Headers = Readonly<Record<string, string>>;

const renderedAsPage = (format: ErrorFormat) => (thrown: unknown) =>
  renderErrorPage(asGatewayError(thrown), format);

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
