// A part of the composition root: the server, and all that a request meets before and after its endpoint.
import type { Config } from '../../config/config.ts';
import { createSite } from '../../pages/site.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import type { Endpoint } from '../endpoint/endpoint.ts';
import { createCanonicalizePath } from './canonical-path.ts';
import type { CorsHeaderNames } from './host-and-origin.ts';
import type { CallerChecks } from './judge.ts';
import { createOverloadRefusals } from './overload.ts';
import { createPipeline } from './pipeline.ts';
import { createSecurityHeaders } from './reply-headers.ts';
import { createAccessLog } from './request-handler.ts';
import { createRouter } from './router.ts';
import { createRunQueue } from './run-queue.ts';
import { createHttpServer, type HttpServer } from './server.ts';
import { tracePublicEndpoints, traceRequests, traceRunQueue } from './trace-requests.ts';

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
