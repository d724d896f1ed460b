// A part of the composition root: what others are told of requests: traces, and the audit log.

import type { Config } from '../config/config.ts';
import type { GatewayRequest } from '../endpoint/message.ts';
import { getErrorCode } from '../platform/error-code.ts';
import type { Fetch } from '../platform/fetch-with-limits.ts';
import { readTraceContext, readTraceId } from '../protocol/json-rpc.ts';
import { traceStore } from '../store/observe-store.ts';
import type { Store } from '../store/store.ts';
import type { Audit } from '../telemetry/audit/audit.ts';
import { openAudit } from '../telemetry/audit/open-audit.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import { openTracing, type TracingDeps } from '../telemetry/tracing/open-tracing.ts';
import type { Tracing } from '../telemetry/tracing/tracing.ts';

export interface Observation {
  /** Undefined without `AUDIT_LOG`. */
  readonly audit: Audit | undefined;
  /** Undefined where nothing is traced; then the functions below return what they are given. */
  readonly tracing: Tracing | undefined;
  traceFetch(fetch: Fetch): Fetch;
  traceStore(store: Store): Store;
  getTraceId(request: GatewayRequest): string | undefined;
  close(): Promise<void>;
}

/** @throws AuditLogError, TracingError */
export async function openObservation(
  config: Config,
  deps: TracingDeps & { readonly metrics: Metrics },
): Promise<Observation> {
  const audit = openAudit(config.audit, {
    ...deps,
    defaultIssuer: config.oauth.provider?.issuer,
  });
  const tracing = await openTracing(config.tracing, deps);
  return {
    audit,
    tracing,
    traceFetch: (fetch) => (tracing === undefined ? fetch : traceFetch(fetch, tracing)),
    traceStore: (store) => (tracing === undefined ? store : traceStore(store, tracing)),
    getTraceId: ({ trace, headers }) =>
      readTraceId(trace?.getContext() ?? readTraceContext(headers)),
    async close() {
      audit?.close();
      await tracing?.close();
    },
  };
}

/** §21.2: requests to the provider as spans, by OpenTelemetry's conventions for HTTP. The provider is told of no trace. */
const traceFetch = (fetch: Fetch, tracing: Tracing): Fetch =>
  async function tracedFetch(url, init) {
    const { protocol, hostname, port, origin, pathname } = new URL(url);
    const method = init.method ?? 'GET';
    const span = tracing.startChild({
      name: method,
      kind: 'client',
      attributes: {
        'http.request.method': method,
        'server.address': hostname,
        'server.port': Number(port || (protocol === 'https:' ? 443 : 80)),
        // Without the query, where secrets may stand.
        'url.full': `${origin}${pathname}`,
      },
    });
    if (span === undefined) return fetch(url, init);
    try {
      const response = await fetch(url, init);
      span.setAttributes({ 'http.response.status_code': response.status });
      if (response.status >= 400) span.fail(String(response.status));
      return response;
    } catch (error) {
      span.fail(getErrorCode(error) ?? (error instanceof Error ? error.name : '_OTHER'));
      throw error;
    } finally {
      span.end();
    }
  };
