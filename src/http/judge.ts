// The first step of a request's way: it is judged without effect, in the order of what is refused
// (§11): Host, origin, method, then what its endpoint asks for.
import { getHeader, type PendingReply } from '../core/message.ts';
import type { Limiter } from '../features/limits/limiter.ts';
import type { GetPreflightHeaders } from './cors.ts';
import type { Exchange, JudgedRequest, UncountedRequest } from './exchange.ts';
import type { HostCheck } from './host-check.ts';
import { createJudgeProtected, type JudgeProtectedDeps } from './judge-protected.ts';
import { createJudgePublic } from './judge-public.ts';
import { checkNavigation, checkOrigin, checkOwnOrigin } from './origin-check.ts';
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
export type Judge = (exchange: Exchange) => Promise<JudgedRequest>;

export function createJudge(deps: JudgeDeps): Judge {
  const { router, checkHost, ownOrigin, limiter, getPreflightHeaders } = deps;
  const judgeProtected = createJudgeProtected(deps);
  const judgePublic = createJudgePublic(deps.readBody);

  return async function judge(exchange) {
    const { received, destination, origin } = exchange;
    const { request, authority } = received;
    const { route } = destination;
    checkHost(getHeader(request, 'host'), authority, route?.isProbe === true);
    checkOrigin(origin);
    if (route?.isNavigation) checkNavigation(request, ownOrigin);
    if (route?.isForOwnPages) checkOwnOrigin(origin, ownOrigin);
    if (request.method === 'OPTIONS') {
      return toUncounted(() => ({ status: 204, headers: getPreflightHeaders(request) }));
    }
    if (route === undefined) return toUncounted(() => router.servePage(request, destination));

    const endpoint = findEndpoint(route, request.method);
    exchange.endpoint = endpoint;
    if (endpoint.kind === 'open') return toUncounted(() => endpoint.handle(request));
    if (endpoint.kind === 'protected') {
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
