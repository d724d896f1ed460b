// A part of the composition root: what others are told of requests: traces, and the audit log.
import type { Audit } from '../core/audit/audit.ts';
import { openAudit } from '../core/audit/open-audit.ts';
import type { Config } from '../core/config/config.ts';
import type { Fetch } from '../core/fetch-with-limits.ts';
import type { GatewayRequest } from '../core/message.ts';
import type { Metrics } from '../core/metrics/metrics.ts';
import type { Store } from '../core/store/store.ts';
import { openTracing, type TracingDeps } from '../core/tracing/open-tracing.ts';
import { traceFetch } from '../core/tracing/trace-fetch.ts';
import { traceStore } from '../core/tracing/trace-store.ts';
import { readTraceId, type Tracing } from '../core/tracing/tracing.ts';
import { readTraceContext } from '../protocol/trace-context.ts';

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
  const audit = openAudit(config.audit, deps);
  const tracing = await openTracing(config.tracing, deps);
  const system = config.store.kind === 'redis' ? 'redis' : 'lmdb';
  return {
    audit,
    tracing,
    traceFetch: (fetch) => (tracing === undefined ? fetch : traceFetch(fetch, tracing)),
    traceStore: (store) => (tracing === undefined ? store : traceStore(store, system, tracing)),
    getTraceId: ({ trace, headers }) =>
      readTraceId(trace?.getContext() ?? readTraceContext(headers)),
    async close() {
      audit?.close();
      await tracing?.close();
    },
  };
}
