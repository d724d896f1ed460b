// A part of the composition root: the server, and all that a request meets before and after its endpoint.
import type { Config } from '../config/config.ts';
import type { Endpoint } from '../http/endpoint/endpoint.ts';
import { type CorsHeaderNames, createSecurityHeaders } from '../http/server/headers.ts';
import type { CallerChecks } from '../http/server/judge-protected.ts';
import {
  createAccessLog,
  tracePublicEndpoints,
  traceRequests,
  traceRunQueue,
} from '../http/server/log-requests.ts';
import { createOverloadRefusals, createRunQueue } from '../http/server/overload.ts';
import { createPipeline } from '../http/server/pipeline.ts';
import { createCanonicalizePath } from '../http/server/receive-request.ts';
import { createRouter } from '../http/server/router.ts';
import { createHttpServer, type HttpServer } from '../http/server/server.ts';
import { createSite } from '../pages/site.ts';
import type { Runtime } from '../runtime/runtime.ts';

export function createTransport(
  runtime: Runtime,
  endpoints: readonly Endpoint[],
  checks: CallerChecks,
  corsHeaders: CorsHeaderNames,
): HttpServer {
  const { config, clock, log, tracing } = runtime;
  const { baseUrl } = config.server;
  const router = createRouter(
    tracing === undefined ? endpoints : tracePublicEndpoints(endpoints),
    createSite({
      baseUrl,
      log,
      logoOrigin: findLogoOrigin(config),
      hasOperatorsPage: config.admin.groups.length > 0,
    }),
  );
  const ownQueue = createRunQueue(clock);
  const runQueue = tracing === undefined ? ownQueue : traceRunQueue(ownQueue, tracing);
  const own = {
    runPipeline: createPipeline(runtime, router, checks, { corsHeaders, runQueue }),
    logRequest: createAccessLog(runtime),
  };
  return createHttpServer(runtime, {
    ...(tracing === undefined ? own : traceRequests(own, tracing, router.isProbe)),
    runQueue,
    isServedWhenBusy: router.isServedWhenBusy,
    overloadRefusals: createOverloadRefusals(endpoints, createSecurityHeaders(config.server)),
    canonicalizePath: createCanonicalizePath(baseUrl, router.hasEndpoint),
  });
}

const findLogoOrigin = ({ site: { logo } }: Config): string | undefined =>
  logo && 'url' in logo ? new URL(logo.url).origin : undefined;
