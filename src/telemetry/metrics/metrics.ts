// §4.11: the interface of metrics.

/** The scope of a window: an address, a user, a grant, a network, or all callers (`global`, with or without a token). */
export type LimitScope = 'ip' | 'user' | 'grant' | 'network' | 'global';

/** §4.11: counters and timers of the service. All durations are in seconds. */
export interface Metrics {
  recordHttpRequest(method: string, route: string, statusCode: number, seconds: number): void;
  /** A call that the overloaded process refused. */
  recordOverloadRefusal(route: string): void;
  recordSessions(status: 'created' | 'terminated' | 'expired', count?: number): void;
  /** `era` is `session` or `stateless`; `view` is the view of the path (§25), `''` for other paths. */
  recordMcpRequest(method: string, era: string, view: string): void;
  /** Each of the first 1,000 tools has its own series; further ones count as `other`. */
  recordToolCall(
    tool: string,
    status: 'success' | 'error' | 'exception',
    era: string,
    seconds: number,
  ): void;
  /** §5.11: grants, the logins of one user by one client. */
  recordGrant(status: 'issued' | 'refreshed' | 'ended'): void;
  /** Renewals of grants at the provider. `failed`: the provider did not answer. */
  recordGrantRenewal(status: 'renewed' | 'ended' | 'failed'): void;
  /** §13.4: logout tokens from the provider. `failed`: the provider has to send it again. */
  recordLogoutToken(status: 'accepted' | 'refused' | 'failed'): void;
  /** `result` is `success` or the reason of the refusal (§7.1). */
  recordAuthAttempt(result: string, seconds: number): void;
  recordKeySetRefresh(status: 'success' | 'error'): void;
  recordKeySetLookup(isFound: boolean): void;
  recordStoreOperation(operation: string, status: 'success' | 'error', seconds: number): void;
  recordRateLimitCheck(endpoint: string, isLimited: boolean): void;
  recordRateLimitHit(endpoint: string, scope: LimitScope): void;
  /** A message between replicas that was not sealed by a replica, or is too old. */
  recordDroppedReplicaMessage(reason: string): void;
  /** §18.8: a request to an upstream server. `method` is one that the gateway sends. */
  recordUpstreamRequest(
    server: string,
    method: string,
    status:
      | 'success'
      | 'unavailable'
      | 'interrupted'
      | 'timeout'
      | 'session_lost'
      | 'invalid'
      | 'overloaded'
      | 'aborted'
      | 'error',
    seconds: number,
  ): void;
  recordUpstreamState(server: string, isUp: boolean): void;
  /** The current number of processes of a stdio server. */
  recordUpstreamProcesses(server: string, count: number): void;
  /** §18.7: an item of a server that the lock hid. `kind` is tool, prompt or instructions. */
  recordLockRefusal(server: string, kind: string, reason: 'new' | 'changed'): void;
  /** §26.5: a decision of a guard. `on` is the checked part of the message. */
  recordGuard(
    guard: string,
    on: string,
    outcome: 'passed' | 'changed' | 'refused' | 'failed',
    seconds: number,
  ): void;
  /** §21.1: a line of the audit log; `error`: it could not be written. */
  recordAuditLine(event: string, status: 'success' | 'error'): void;
  /** §24.6: a refresh of a user's connection to a server at a token endpoint. */
  recordUpstreamTokenRefresh(server: string, outcome: 'renewed' | 'login_needed' | 'failed'): void;
  /** §27: approvals of calls, by the way of asking. */
  recordApproval(
    ask: 'form' | 'page' | 'operator',
    outcome: 'asked' | 'approved' | 'refused' | 'used',
  ): void;
  /** Removes the series of a server that was removed. */
  removeUpstream(server: string): void;
  /** Renders the scraped text, which ends with `# EOF`. */
  renderOpenMetrics(counts: StoredCounts): Promise<string>;
}

/** Numbers that are counted in the store on each scrape. Unknown numbers are left out: old ones would be wrong. */
export interface StoredCounts {
  readonly activeSessions: number | undefined;
  /** §27.5: calls that wait for operators. */
  readonly waitingApprovals: number | undefined;
  /** §24.6: users' connections to servers. */
  readonly connections: readonly ConnectionCount[];
}

export interface ConnectionCount {
  readonly server: string;
  readonly state: 'active' | 'login_needed';
  readonly count: number;
}

/** Counts nothing in the store. */
export const NO_COUNTS: StoredCounts = {
  activeSessions: undefined,
  waitingApprovals: undefined,
  connections: [],
};

export const METRICS_CONTENT_TYPE = 'application/openmetrics-text; version=1.0.0; charset=utf-8';

const ignore = () => {};

/** `METRICS_ENABLED=false`: counts nothing. */
export const noMetrics: Metrics = {
  recordHttpRequest: ignore,
  recordOverloadRefusal: ignore,
  recordSessions: ignore,
  recordMcpRequest: ignore,
  recordToolCall: ignore,
  recordGrant: ignore,
  recordGrantRenewal: ignore,
  recordLogoutToken: ignore,
  recordAuthAttempt: ignore,
  recordKeySetRefresh: ignore,
  recordKeySetLookup: ignore,
  recordStoreOperation: ignore,
  recordRateLimitCheck: ignore,
  recordRateLimitHit: ignore,
  recordDroppedReplicaMessage: ignore,
  recordUpstreamRequest: ignore,
  recordUpstreamState: ignore,
  recordUpstreamProcesses: ignore,
  recordLockRefusal: ignore,
  recordGuard: ignore,
  recordAuditLine: ignore,
  recordUpstreamTokenRefresh: ignore,
  recordApproval: ignore,
  removeUpstream: ignore,
  renderOpenMetrics: async () => '# EOF\n',
};
