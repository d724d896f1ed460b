// §2.1, §2.2, §2.8: the keys of the shared store. Everything that builds a key is here.
/** §2.1: `<prefix><id>`; the prefix is `MCP_SESSION_KEY_PREFIX`. */
export const buildSessionKey = (sessionKeyPrefix: string, sessionId: string): string =>
  sessionKeyPrefix + sessionId;

/** The sorted set of live sessions, scored by expiry. No session id reads `index`. */
export const buildSessionIndexKey = (sessionKeyPrefix: string): string =>
  `${sessionKeyPrefix}index`;

/** A key that has a value for a moment only: a process deletes it to see whether Redis takes writes, and sets it once to hear of it. */
export const buildHeartbeatKey = (sessionKeyPrefix: string): string =>
  `${sessionKeyPrefix}heartbeat`;

/** The sorted set of one user's sessions, scored by expiry; `hash` is that of the `sub`. */
export const buildUserSessionsKey = (sessionKeyPrefix: string, hash: string): string =>
  `${sessionKeyPrefix}user:${hash}`;

/**
 * The channel on which replicas talk to each other. Not a key, but like one: channels ignore
 * database numbers, so services that share a server are kept apart by the prefix alone.
 */
export const buildChannelName = (sessionKeyPrefix: string): string => `${sessionKeyPrefix}bus`;

/** The channel on which replicas hear that a grant has ended. */
export const buildEndedGrantsChannelName = (sessionKeyPrefix: string): string =>
  `${sessionKeyPrefix}ended-grants`;

/** The channel on which replicas hear what happened to connections (§24). */
export const buildConnectionsChannelName = (sessionKeyPrefix: string): string =>
  `${sessionKeyPrefix}connections`;

/** That a session wants to hear of a resource's changes; `hash` is that of its URI. */
export const buildSubscriptionKey = (
  sessionKeyPrefix: string,
  sessionId: string,
  hash: string,
): string => `${sessionKeyPrefix}${sessionId}:subscription:${hash}`;

/** The number of the stream that a session opened last. */
export const buildStreamNumberKey = (sessionKeyPrefix: string, sessionId: string): string =>
  `${sessionKeyPrefix}${sessionId}:stream`;

/** The messages that a stream of a session has sent, for a client that comes back. */
export const buildStreamLogKey = (
  sessionKeyPrefix: string,
  sessionId: string,
  stream: string,
): string => `${sessionKeyPrefix}${sessionId}:stream-log:${stream}`;

/** The bytes of all that lies there: of all users, or of the one whose name has this hash. */
export const buildStreamBytesKey = (sessionKeyPrefix: string, owner: string): string =>
  `${sessionKeyPrefix}stream-bytes:${owner}`;

/**
 * The server behind the gateway that named a resource in a result for the session, or for a caller without one; `hash` is
 * that of its URI.
 */
export const buildResourceLinkKey = (
  sessionKeyPrefix: string,
  owner: string,
  hash: string,
): string => `${sessionKeyPrefix}${owner}:link:${hash}`;

/** The replica that waits for a client's answer. */
export const buildQuestionKey = (sessionKeyPrefix: string, sessionId: string, id: string): string =>
  `${sessionKeyPrefix}${sessionId}:question:${id}`;

/** That a session got a question by URL; `hash` is that of its id. */
export const buildElicitationKey = (
  sessionKeyPrefix: string,
  sessionId: string,
  hash: string,
): string => `${sessionKeyPrefix}${sessionId}:elicitation:${hash}`;

/** The channel on which replicas talk about calls at servers that wait for an answer. */
export const buildSuspendedCallChannelName = (sessionKeyPrefix: string): string =>
  `${sessionKeyPrefix}calls`;

/** The outcome of such a call; `hash` is that of its id and user. */
export const buildSuspendedCallKey = (sessionKeyPrefix: string, hash: string): string =>
  `${sessionKeyPrefix}call:${hash}`;

/** The bytes of those that nobody has taken: of all users, or of the one whose `sub` has this hash. */
export const buildSuspendedBytesKey = (sessionKeyPrefix: string, owner: string): string =>
  `${sessionKeyPrefix}call-bytes:${owner}`;

/** §29: a task; `hash` is that of its id, its user and its path. */
export const buildTaskKey = (sessionKeyPrefix: string, hash: string): string =>
  `${sessionKeyPrefix}task:${hash}`;

/** The tasks that count, those that run or what is kept: of all users, or of the one whose `sub` has this hash. */
export const buildTaskBudgetKey = (
  sessionKeyPrefix: string,
  counted: 'running' | 'kept',
  owner: string,
): string => `${sessionKeyPrefix}tasks-${counted}:${owner}`;

/** That a replica with tasks is there. */
export const buildTaskReplicaKey = (sessionKeyPrefix: string, replica: string): string =>
  `${sessionKeyPrefix}task-replica:${replica}`;

/** The channel on which replicas hear that a task has changed. */
export const buildTasksChannelName = (sessionKeyPrefix: string): string =>
  `${sessionKeyPrefix}tasks`;

/** That the answers to what a server behind the gateway asked were passed on to it. */
export const buildRedeemedAnswersKey = (sessionKeyPrefix: string, id: string): string =>
  `${sessionKeyPrefix}answered:${id}`;

/** A session's own session at a server behind the gateway; `hash` is that of the server. */
export const buildUpstreamSessionKey = (
  sessionKeyPrefix: string,
  sessionId: string,
  hash: string,
): string => `${sessionKeyPrefix}${sessionId}:upstream:${hash}`;

/** The channel on which replicas hear that a session subscribed to other resources of such a server. */
export const buildUpstreamSubscriptionsChannelName = (
  sessionKeyPrefix: string,
  hash: string,
): string => `${sessionKeyPrefix}upstream:${hash}`;

/** The channel on which replicas pass on what a server asked, whose URL and name have this hash. */
export const buildQuestionsChannelName = (sessionKeyPrefix: string, hash: string): string =>
  `${sessionKeyPrefix}questions:${hash}`;

/** The secret that all replicas seal with where the settings give none. */
export const buildSharedSecretKey = (sessionKeyPrefix: string): string =>
  `${sessionKeyPrefix}secret`;

/** §2.2. */
export const buildClientKey = (clientId: string): string => `dcr:client:${clientId}`;

/** The list of registered clients. */
export const CLIENT_LIST_KEY = 'dcr:clients';

/** The last logins that failed. */
export const LOGIN_FAILURES_KEY = 'oauth:failures';

/** The users who called without a session. */
export const CALLER_LIST_KEY = 'admin:callers';

/** One of them; `hash` is that of the `sub`. */
export const buildCallerKey = (hash: string): string => `admin:caller:${hash}`;

/** A record of a login; `hash` is that of the secret by which it is found. */
export const buildOAuthKey = (kind: string, hash: string): string => `oauth:${kind}:${hash}`;

/** The login that the gateway's own tokens stand for. */
export const buildGrantKey = (id: string): string => buildOAuthKey('grant', id);

/** The list of one user's grants; `hash` is that of the user. */
export const buildUserGrantsKey = (hash: string): string => buildOAuthKey('user-grants', hash);

/** The list of those that one session at the provider has led to; `hash` is that of issuer and `sid`. */
export const buildSidGrantsKey = (hash: string): string => buildOAuthKey('sid-grants', hash);

/** The list of all of them. */
export const GRANT_LIST_KEY = 'oauth:grants';

/** A grant in a list, which is that of a user, of a session at the provider, or `all`. */
export const buildListedGrantKey = (list: string, id: string): string =>
  buildOAuthKey('listed-grant', `${list}:${id}`);

/** The number of times that many logins were ended at once. */
export const LOGOUT_COUNT_KEY = 'oauth:logouts';

/** That those of a user, by a client, of a session at the provider, or all were; `hash` is that of whose. */
export const buildLogoutKey = (hash: string): string => buildOAuthKey('logout', hash);

/** That a logout token of the provider came; `hash` is that of issuer and `jti`. */
export const buildLogoutTokenKey = (hash: string): string => buildOAuthKey('logout-token', hash);

/** That an assertion of a client was used; `hash` is that of client and `jti`. */
export const buildAssertionKey = (hash: string): string => buildOAuthKey('client-assertion', hash);

/** That an assertion about a user was used (ID-JAG); `hash` is that of issuer and `jti`. */
export const buildUserAssertionKey = (hash: string): string =>
  buildOAuthKey('user-assertion', hash);

/** The grant of which a client that logs in as itself is given a token again; `hash` is that of client, scopes and resources. */
export const buildMachineGrantKey = (hash: string): string => buildOAuthKey('machine-grant', hash);

/** The client that got a token in broker mode; `hash` is that of the token. */
export const buildTokenClientKey = (hash: string): string => buildOAuthKey('token-client', hash);

/** §24: what lets the gateway act for one user at one server; `hash` is that of both. */
export const buildConnectionKey = (hash: string): string => `connection:record:${hash}`;

/** Held by the replica that renews such a connection, or registers at an authorization server. */
export const buildConnectionLockKey = (hash: string): string => `connection:lock:${hash}`;

/** The list of one user's connections; `hash` is that of the user. */
export const buildUserConnectionsKey = (hash: string): string => `connection:user:${hash}`;

/** The list of those at one server; `hash` is that of its name. */
export const buildServerConnectionsKey = (hash: string): string => `connection:server:${hash}`;

/** The list of those among them that need a login. */
export const buildServerLoginsNeededKey = (hash: string): string =>
  `connection:logins-needed:${hash}`;

/** A connection in a list of a user, of a server, or of those that need a login there. */
export const buildListedConnectionKey = (
  list: 'user' | 'server' | 'login-needed',
  hash: string,
): string => `connection:listed:${list}:${hash}`;

/** The client that the gateway is at an authorization server, where it registered there; `hash` is that of the issuer and BASE_URL. */
export const buildConnectionClientKey = (hash: string): string => `connection:client:${hash}`;

/** Which authorization server the users of a server were sent to last; `hash` is that of BASE_URL and the server's name. */
export const buildConnectionIssuerKey = (hash: string): string => `connection:issuer:${hash}`;

/** The link that a user was given a moment ago; `hash` is that of user, server and scopes. */
export const buildConnectionLinkKey = (hash: string): string => `connection:link:${hash}`;

/** The key of a month by which the gateway logs in at authorization servers (RFC 7523). */
export const buildClientKeyName = (month: number): string => `connection:signing-key:${month}`;

/** The key of a month by which the gateway signs what it tells servers of a caller (§18.6). */
export const buildIdentityKeyName = (month: number): string => `identity:key:${month}`;

/** That the audit log has a line of today that says that a connection was renewed (§24.6). */
export const buildAuditedRenewalKey = (connectionId: string): string =>
  `connection:audited:${connectionId}`;

/** §27: a call that somebody is asked about; `hash` is that of the id of its request. */
export const buildApprovalKey = (hash: string): string => `approval:request:${hash}`;

/** The request under way for a call; `hash` is that of user, client, call, and who is asked. */
export const buildApprovedCallKey = (hash: string): string => `approval:call:${hash}`;

/** The list of requests of one user; `hash` is that of the user. */
export const buildUserApprovalsKey = (hash: string): string => `approval:user:${hash}`;

/** The list of all requests. */
export const APPROVAL_LIST_KEY = 'approval:all';

/** The list of those that operators decide. */
export const OPERATOR_APPROVALS_KEY = 'approval:operators';

/** A request in a list; `hash` is that of its id. */
export const buildListedApprovalKey = (list: 'user' | 'all' | 'operators', hash: string): string =>
  `approval:listed:${list}:${hash}`;

/** That a call may run again in its session without a question; `hash` is that of session and call. */
export const buildSessionApprovalKey = (hash: string): string => `approval:session:${hash}`;

/** The state of a call of several rounds (2026-07-28); `hash` is that of the secret in its state. */
export const buildApprovalRoundKey = (hash: string): string => `approval:round:${hash}`;

/** The channel on which replicas hear what was decided. */
export const buildApprovalsChannelName = (sessionKeyPrefix: string): string =>
  `${sessionKeyPrefix}approvals`;

/**
 * §2.8: `ratelimit:<group>:<counted>`, where what is counted is an address, `global`,
 * `anonymous`, `refused`, `user:<hash of sub>`, or `grant:<id>`.
 */
export const buildLimitKey = (group: string, counted: string): string =>
  `ratelimit:${group}:${counted}`;

/** The shares of such a window that processes have taken in advance; in its slot on a cluster. */
export const buildLeasedKey = (limitKey: string): string => `ratelimit:leased:{${limitKey}}`;

/** That some of it was returned, by a command of this id. */
export const buildReturnedKey = (limitKey: string, id: string): string =>
  `${buildLeasedKey(limitKey)}:returned:${id}`;

/** That any process has taken something in advance. */
export const LEASED_MARK_KEY = 'ratelimit:leased';

/** Users with an e-mail address, for operators; `mac` is that of the address. Those whom the provider says it belongs to have a list of their own. */
export const buildPersonKey = (mac: string, isVerified: boolean): string =>
  `admin:person:${mac}${isVerified ? ':verified' : ''}`;
