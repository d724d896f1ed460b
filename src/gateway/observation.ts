// A part of the composition root: what others are told of requests: traces, and the audit log.

import type { Config } from '../config/config.ts';
import type { GatewayRequest } from '../endpoint/message.ts';
import type { Fetch } from '../platform/fetch-with-limits.ts';
import { readTraceContext } from '../protocol/json-rpc.ts';
import type { Store } from '../store/store.ts';
import { traceStore } from '../store/trace-store.ts';
import type { Audit } from '../telemetry/audit/audit.ts';
import { openAudit } from '../telemetry/audit/open-audit.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import { openTracing, type TracingDeps } from '../telemetry/tracing/open-tracing.ts';
import { traceFetch } from '../telemetry/tracing/trace-fetch.ts';
import { readTraceId, type Tracing } from '../telemetry/tracing/tracing.ts';

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
