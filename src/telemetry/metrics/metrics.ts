/** The requests that a window counts: those of an address, a user, or all callers (`global`, and those without a token). */
export type LimitScope = 'ip' | 'user' | 'grant' | 'network' | 'global';

/** §4.11: what the service counts and times. All durations are in seconds. */
export interface Metrics {
  recordHttpRequest(method: string, route: string, statusCode: number, seconds: number): void;
  /** A call that was refused because more came than the process could serve. */
  recordOverloadRefusal(route: string): void;
  recordSessions(status: 'created' | 'terminated' | 'expired', count?: number): void;
  /** `era` is `session` or `stateless`, `view` that of the path (§25), `''` for other paths. */
  recordMcpRequest(method: string, era: string, view: string): void;
  /** Each of the first 1,000 tools has series of its own; further ones are counted as `other`. */
  recordToolCall(
    tool: string,
    status: 'success' | 'error' | 'exception',
    era: string,
    seconds: number,
  ): void;
  /** §5.11: what became of a grant: the login of one user by one client. */
  recordGrant(status: 'issued' | 'refreshed' | 'ended'): void;
  /** The provider was asked whether a user still may. `failed` is that it could not be. */
  recordGrantRenewal(status: 'renewed' | 'ended' | 'failed'): void;
  /** §13.4: what became of a logout token of the provider. `failed` is that it has to be sent again. */
  recordLogoutToken(status: 'accepted' | 'refused' | 'failed'): void;
  /** `result` is `success` or the reason of the refusal (§7.1). */
  recordAuthAttempt(result: string, seconds: number): void;
  recordKeySetRefresh(status: 'success' | 'error'): void;
  recordKeySetLookup(isFound: boolean): void;
  recordStoreOperation(operation: string, status: 'success' | 'error', seconds: number): void;
  recordRateLimitCheck(endpoint: string, isLimited: boolean): void;
  recordRateLimitHit(endpoint: string, scope: LimitScope): void;
  /** A message between replicas that was not sealed by one, or not just now. */
  recordDroppedReplicaMessage(reason: string): void;
  /** §18.8: a request to a server behind the gateway. `method` is one that the gateway sends. */
  recordUpstreamRequest(
    server: string,
    method: string,
    status:
      | 'success'
      | 'unavailable'
      | 'timeout'
      | 'session_lost'
      | 'invalid'
      | 'overloaded'
      | 'aborted'
      | 'error',
    seconds: number,
  ): void;
  recordUpstreamState(server: string, isUp: boolean): void;
  /** The number of processes that a stdio server has now. */
  recordUpstreamProcesses(server: string, count: number): void;
  /** §18.7: the lock hid what a server listed. `kind` is tool, prompt or instructions. */
  recordLockRefusal(server: string, kind: string, reason: 'new' | 'changed'): void;
  /** §26.5: a guard was asked about a message. `on` is what of it. */
  recordGuard(
    guard: string,
    on: string,
    outcome: 'passed' | 'changed' | 'refused' | 'failed',
    seconds: number,
  ): void;
  /** §21.1: a line of the audit log; `error` is one that could not be written. */
  recordAuditLine(event: string, status: 'success' | 'error'): void;
  /** §24.6: a token endpoint was asked to renew a user's connection to a server. */
  recordUpstreamTokenRefresh(server: string, outcome: 'renewed' | 'login_needed' | 'failed'): void;
  /** §27: what became of a call that somebody is asked about, by how they are asked. */
  recordApproval(
    ask: 'form' | 'page' | 'operator',
    outcome: 'asked' | 'approved' | 'refused' | 'used',
  ): void;
  /** It is no longer behind the gateway. */
  removeUpstream(server: string): void;
  /** The text that is scraped, ended by `# EOF`. */
  renderOpenMetrics(counts: StoredCounts): Promise<string>;
}

/** Numbers that are counted in the store when somebody asks. A number that is not known is left out: an old figure would be untrue. */
export interface StoredCounts {
  readonly activeSessions: number | undefined;
  /** §24.6: users' connections to servers. */
  readonly connections: readonly ConnectionCount[];
}

export interface ConnectionCount {
  readonly server: string;
  readonly state: 'active' | 'login_needed';
  readonly count: number;
}

/** For a store that is not asked. */
export const NO_COUNTS: StoredCounts = { activeSessions: undefined, connections: [] };

export const METRICS_CONTENT_TYPE = 'application/openmetrics-text; version=1.0.0; charset=utf-8';

const ignore = () => {};

/** `METRICS_ENABLED=false`: nothing is counted. */
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
