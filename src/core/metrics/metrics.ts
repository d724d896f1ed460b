import type { LimitScope } from '../store/store.ts';

/** Spec §4.11: what the service counts and times. All durations are in seconds. */
export interface Metrics {
  httpRequest(method: string, route: string, status: number, seconds: number): void;
  session(status: 'created' | 'terminated' | 'expired', count?: number): void;
  /** `era` is `session` or `stateless`. */
  mcpRequest(method: string, era: string): void;
  toolInvocation(
    tool: string,
    status: 'success' | 'error' | 'exception',
    era: string,
    seconds: number,
  ): void;
  /** `result` is `success` or the reason of the refusal (Spec §7.1). */
  authAttempt(result: string, seconds: number): void;
  keySetRefresh(status: 'success' | 'error'): void;
  keySetLookup(found: boolean): void;
  storeOperation(operation: string, status: 'success' | 'error', seconds: number): void;
  rateLimitRequest(endpoint: string, limited: boolean): void;
  rateLimitHit(endpoint: string, scope: LimitScope): void;
  /** A message between replicas that was not sealed by one, or not just now. */
  replicaMessageDropped(reason: string): void;
  /** OpenMetrics text, ended by `# EOF`. */
  exposition(activeSessions: number | undefined): Promise<string>;
}

export const METRICS_CONTENT_TYPE = 'application/openmetrics-text; version=1.0.0; charset=utf-8';

/** `METRICS_ENABLED=false`: nothing is counted. */
export const noMetrics: Metrics = {
  httpRequest() {},
  session() {},
  mcpRequest() {},
  toolInvocation() {},
  authAttempt() {},
  keySetRefresh() {},
  keySetLookup() {},
  storeOperation() {},
  rateLimitRequest() {},
  rateLimitHit() {},
  replicaMessageDropped() {},
  exposition: async () => '# EOF\n',
};
