// Decisions 2: which refusal wins. Host → origin → preflight → method → limit → token → body,
// then the route. Everything thrown is rendered here, in the route's format.

import { renderErrorPage } from '../core/errors/error-page.ts';
import { asGatewayError, fail } from '../core/errors/gateway-error.ts';
import { type ErrorFormat, JSONRPC, renderError } from '../core/errors/render.ts';
import { isSessionId } from '../core/ids.ts';
import { type GatewayRequest, header, type Reply, type RequestBody } from '../core/message.ts';
import type { UserContext } from '../core/user-context.ts';
import type { Admitted, Limiter, ReadSession } from '../features/limits/limiter.ts';
import type { Site } from '../features/site/site.ts';
import { prefersHtml } from './accept.ts';
import type { BodyOwner, BodyRules } from './body.ts';
import type { Cors } from './cors.ts';
import type { HostCheck } from './host.ts';
import { checkNavigation } from './navigation.ts';
import { type Resource, type Router, routeFor } from './router.ts';
import type { Given, Route } from './routes.ts';

/** A request with what only the transport knows. */
export interface Incoming {
  readonly request: GatewayRequest;
  /** Authority of a target in absolute form. */
  readonly authority: string | undefined;
  /** Reads the body; called at most once. `maxBytes` where it is less than usual. */
  readBody(
    accepts: BodyRules['accepts'],
    owner: BodyOwner,
    maxBytes?: number,
  ): Promise<RequestBody>;
  /** Milliseconds since the head arrived. */
  age(): number;
}

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
  readonly readSession: ReadSession;
  /** Spec §5, or lets everybody in. @throws GatewayError with a reason of §7.1. */
  readonly bearer: (request: GatewayRequest) => Promise<UserContext | undefined>;
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
  const { router, site, checkHost, isAllowedOrigin, limiter, readSession, bearer, ownOrigin } =
    deps;

  return async function answer(incoming) {
    const target = targetOf(incoming.request);
    const origin = originOf(incoming.request);
    const reply = await guarded(incoming, target, origin).catch(rendered(JSONRPC));
    const granted = origin.isAllowed && !target.resource?.navigation;
    const grant = deps.cors(granted ? origin.value : undefined);
    return { reply: finished(reply, deps.securityHeaders, grant), route: target.route };
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
    if (target.resource) return admitted(incoming, routeFor(target.resource, request.method));
    return target.page ? pageFor(request, target.page) : missing(request);
  }

  /** The limits' headers stand on whatever the route answers. */
  async function admitted(incoming: Incoming, route: Route): Promise<Reply> {
    const { headers, session } = await admit(incoming.request, route);
    const reply = await served(incoming, route, session).catch(
      route.pages && prefersHtml(header(incoming.request, 'accept'))
        ? renderedAsPage(route.errors)
        : rendered(route.errors),
    );
    if (headers === undefined && route.headers === undefined) return reply;
    return { ...reply, headers: { ...route.headers, ...reply.headers, ...headers } };
  }

  function admit(request: GatewayRequest, { limit }: Route): Promise<Admitted> | Admitted {
    if (limit === undefined) return UNCOUNTED;
    return limiter(limit, request.clientIp, sessionIdOf(request));
  }

  async function served(
    incoming: Incoming,
    route: Route,
    session: Given['session'],
  ): Promise<Reply> {
    const { request } = incoming;
    const user = route.auth ? await bearer(request) : undefined;
    if (!route.body) return route.handle(request, { user, session, body: NO_BODY });
    const body = await incoming.readBody(route.body, ownerOf(route, user), route.maxBodyBytes);
    if (route.auth && incoming.age() > DAWDLING_MS) return servedLate(request, route, body);
    return route.handle(request, { user, session, body });
  }

  /** While a body dawdled its token may have expired, and its session may have been ended. */
  async function servedLate(request: GatewayRequest, route: Route, body: RequestBody) {
    const user = await bearer(request);
    const session = await readSession(sessionIdOf(request));
    return route.handle(request, { user, session, body });
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

/** Decisions 10: with `AUTH_REQUIRED=false` nobody is a stranger. */
function ownerOf(route: Route, user: UserContext | undefined): BodyOwner {
  if (!route.auth) return 'stranger';
  return user === undefined ? 'anonymous' : { sub: user.sub };
}

/** Nothing that cannot be a session id reaches the store (decisions 4). */
function sessionIdOf(request: GatewayRequest): string | undefined {
  const sessionId = header(request, 'mcp-session-id');
  return sessionId !== undefined && isSessionId(sessionId) ? sessionId : undefined;
}

/** Longer than any body takes that is sent in one go. */
const DAWDLING_MS = 1000;

const UNCOUNTED: Admitted = { session: { record: undefined } };
const NO_BODY: RequestBody = { type: 'json', value: undefined, text: '' };

const rendered = (format: ErrorFormat) => (thrown: unknown) =>
  renderError(asGatewayError(thrown), format);

type Headers = Readonly<Record<string, string>>;

const renderedAsPage = (format: ErrorFormat) => (thrown: unknown) =>
  renderErrorPage(asGatewayError(thrown), format);

/** Every header at once. Decisions 7: `Vary: Origin` always. */
function finished(reply: Reply, security: Headers, cors: Headers): Reply {
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
