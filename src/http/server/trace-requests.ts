// §21.2: each request as a span, by OpenTelemetry's conventions for HTTP. Never a query or a body: they carry
// codes, states and tokens.

import { truncateForLog } from '../../platform/log.ts';
import {
  type RequestTrace,
  readTraceContext,
  type Span,
  type Tracing,
} from '../../telemetry/tracing/tracing.ts';
import type { Endpoint } from '../endpoint/endpoint.ts';
import type { Pipeline, RoutedReply } from './pipeline.ts';
import { type LoggedRequest, type LogRequest, toKnownMethod } from './request-handler.ts';
import type { RunQueue } from './run-queue.ts';

interface TracedService {
  readonly runPipeline: Pipeline;
  readonly logRequest: LogRequest;
}

/** The span of a request ends when its reply has been sent. Probes have none, and so nothing below one. */
export function traceRequests(
  { runPipeline, logRequest }: TracedService,
  tracing: Tracing,
  /** They come every few seconds, and would fill the traces of a quiet gateway. */
  isProbe: (path: string) => boolean,
): TracedService {
  /** Some replies are the same object for many requests. Apart from the request, which is not kept while it runs. */
  const keepTrace = (trace: RequestTrace) => (answer: RoutedReply) => ({
    ...answer,
    reply: { ...answer.reply, trace },
  });

  return {
    runPipeline(received) {
      const { request } = received;
      if (isProbe(request.path)) return runPipeline(received);
      const trace = tracing.startRequest(readTraceContext(request.headers));
      const traced = { ...received, request: { ...request, trace } };
      const answer = runPipeline(traced);
      return answer instanceof Promise ? answer.then(keepTrace(trace)) : keepTrace(trace)(answer);
    },
    logRequest(logged) {
      logRequest(logged);
      const { trace } = logged.reply;
      const span = trace?.getSpan();
      if (trace === undefined || span === undefined) return;
      describe(span, logged);
      trace.end(`${toKnownMethod(logged.method)} ${logged.route}`);
    },
  };
}

function describe(span: Span, { method, path, route, clientIp, reply }: LoggedRequest): void {
  const { status } = reply;
  const known = toKnownMethod(method);
  span.setAttributes({
    'http.request.method': known === 'other' ? '_OTHER' : known,
    'http.response.status_code': status,
    'http.route': route,
    'url.path': truncateForLog(path),
    'client.address': clientIp,
  });
  if (status >= 500) span.fail(String(status));
}

/** The same endpoints: what they find out while they judge belongs to their requests, as what they do later does (pipeline.ts). */
export const tracePublicEndpoints = (endpoints: readonly Endpoint[]): readonly Endpoint[] =>
  endpoints.map((endpoint) =>
    endpoint.kind === 'public'
      ? {
          ...endpoint,
          judge(request, body) {
            const judge = () => endpoint.judge(request, body);
            return request.trace ? request.trace.run(judge) : judge();
          },
        }
      : endpoint,
  );

/** Calls wait in the queue, and run when another request says so: each for the one that it belongs to. */
export const traceRunQueue = (runQueue: RunQueue, tracing: Tracing): RunQueue => ({
  ...runQueue,
  run: (task) => runQueue.run(tracing.bind(task)),
});
