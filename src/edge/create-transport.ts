// A part of the composition root: the server, and all that a request meets before and after its endpoint.

import type { Auth } from '../auth/auth.ts';
import type { Config } from '../config/config.ts';
import type { Endpoint } from '../endpoint/endpoint.ts';
import type { GatewayRequest } from '../endpoint/message.ts';
import type { Clock } from '../platform/clock.ts';
import type { Log } from '../platform/log.ts';
import { createSite } from '../site/site.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import { readTraceContext } from '../telemetry/tracing/trace-context.ts';
import type { Tracing } from '../telemetry/tracing/tracing.ts';
import { createCanonicalizePath } from './canonical-path.ts';
import {
  type CorsHeaderNames,
  createGetCorsHeaders,
  createGetPreflightHeaders,
  createHostCheck,
  createIsAllowedOrigin,
} from './host-and-origin.ts';
import type { JudgeDeps } from './judge.ts';
import type { Limiter } from './limits/limiter.ts';
import { createOverloadRefusals } from './overload.ts';
import { createPipeline } from './pipeline.ts';
import { createBodyReader } from './read-body.ts';
import { createFindClientIp } from './receive-request.ts';
import { createSecurityHeaders } from './reply-headers.ts';
import { createAccessLog } from './request-handler.ts';
import { createRouter } from './router.ts';
import { createRunQueue } from './run-queue.ts';
import { createHttpServer, type HttpServer } from './server.ts';
import { tracePublicEndpoints, traceRequests, traceRunQueue } from './trace-requests.ts';

/** What a header section may have beside the token. */
const OTHER_HEADERS_BYTES = 16_384;

export interface TransportParts {
  readonly endpoints: readonly Endpoint[];
  readonly corsHeaders: CorsHeaderNames;
  readonly authenticate: Auth['authenticate'];
  readonly noteRefusedToken?: JudgeDeps['noteRefusedToken'];
  readonly reload: Auth['reload'];
  readonly getChallenge: Auth['getChallenge'];
  readonly limiter: Limiter;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly log: Log;
  /** Undefined where nothing is traced. */
  readonly tracing: Tracing | undefined;
}

/** The server, and all that a request meets before and after its endpoint. */
export function createTransport(config: Config, parts: TransportParts): HttpServer {
  const { clock, metrics, log, tracing } = parts;
  const { http } = config;
  const { baseUrl } = config.server;
  const securityHeaders = createSecurityHeaders(config.server);
  const router = createRouter(
    tracing === undefined ? parts.endpoints : tracePublicEndpoints(parts.endpoints),
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
    runPipeline: createPipeline({
      router,
      checkHost: createHostCheck(config),
      isAllowedOrigin: createIsAllowedOrigin(config),
      getCorsHeaders: createGetCorsHeaders(parts.corsHeaders),
      getPreflightHeaders: createGetPreflightHeaders(parts.corsHeaders),
      ownOrigin: new URL(baseUrl).origin,
      limiter: parts.limiter,
      authenticate: parts.authenticate,
      noteRefusedToken: parts.noteRefusedToken,
      reload: parts.reload,
      getChallenge: parts.getChallenge,
      readBody: createBodyReader({
        maxBodyBytes: http.maxBodyBytes,
        maxBodyValues: http.maxBodyValues,
        clock,
      }),
      securityHeaders,
      runQueue,
      clock,
    }),
    logRequest: createAccessLog(log, metrics, clock),
  };
  return createHttpServer({
    ...(tracing === undefined
      ? own
      : traceRequests(own, { tracing, readParent, isProbe: router.isProbe })),
    runQueue,
    isServedWhenBusy: router.isServedWhenBusy,
    overloadRefusals: createOverloadRefusals(parts.endpoints, securityHeaders),
    findClientIp: createFindClientIp(http.trustProxy),
    canonicalizePath: createCanonicalizePath({ baseUrl, hasEndpoint: router.hasEndpoint }),
    securityHeaders,
    maxConnections: http.maxConnections,
    streamKeepaliveMs: http.streamKeepaliveMs,
    maxHeaderBytes: http.maxTokenBytes + OTHER_HEADERS_BYTES,
    clock,
    metrics,
    log,
  });
}

const readParent = ({ headers }: GatewayRequest) => readTraceContext(headers);

const findLogoOrigin = ({ site: { logo } }: Config): string | undefined =>
  logo && 'url' in logo ? new URL(logo.url).origin : undefined;
