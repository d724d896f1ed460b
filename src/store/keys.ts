// §2.1, §2.2, §2.8: the keys of the shared store. Everything that builds a key is here.

// Forms that most of them have. Their last part tells one from the others: an id, or a hash.

/** One key. `sessionKeyPrefix` is `MCP_SESSION_KEY_PREFIX`. */
const defineKey = (name: string) => (sessionKeyPrefix: string) => sessionKeyPrefix + name;

/** Keys beside those of sessions. */
const defineKeys = (name: string) => (sessionKeyPrefix: string, hash: string) =>
  `${sessionKeyPrefix}${name}:${hash}`;

const defineSessionKeys =
  (name: string) => (sessionKeyPrefix: string, sessionId: string, hash: string) =>
    `${sessionKeyPrefix}${sessionId}:${name}:${hash}`;

/** Keys that begin alike whatever the prefix is. */
const defineGlobalKeys = (start: string) => (hash: string) => `${start}:${hash}`;

/** §2.1: `<prefix><id>`; the prefix is `MCP_SESSION_KEY_PREFIX`. */
export const buildSessionKey = (sessionKeyPrefix: string, sessionId: string) =>
  sessionKeyPrefix + sessionId;
/** The sorted set of live sessions, scored by expiry. No session id reads `index`. */
export const buildSessionIndexKey = defineKey('index');
/** A key that has a value for a moment only: a process deletes it to see whether Redis takes writes, and sets it once to hear of it. */
export const buildHeartbeatKey = defineKey('heartbeat');
/** The sorted set of one user's sessions, scored by expiry; `hash` is that of the `sub`. */
export const buildUserSessionsKey = defineKeys('user');

/**
 * The channel on which replicas talk to each other. Not a key, but like one: channels ignore
 * database numbers, so services that share a server are kept apart by the prefix alone.
 */
export const buildChannelName = defineKey('bus');
export const buildEndedGrantsChannelName = defineKey('ended-grants');
export const buildConnectionsChannelName = defineKey('connections');

/** That a session wants to hear of a resource's changes; `hash` is that of its URI. */
export const buildSubscriptionKey = defineSessionKeys('subscription');
/** The number of the stream that a session opened last. */
export const buildStreamNumberKey = (sessionKeyPrefix: string, sessionId: string) =>
  `${sessionKeyPrefix}${sessionId}:stream`;
/** The messages that a stream of a session has sent, for a client that comes back. */
export const buildStreamLogKey = defineSessionKeys('stream-log');
/** The bytes of all that lies there: of all users, or of the one whose name has this hash. */
export const buildStreamBytesKey = defineKeys('stream-bytes');
/**
 * The server behind the gateway that named a resource in a result for the session, or for a caller without one; `hash` is
 * that of its URI.
 */
export const buildResourceLinkKey = defineSessionKeys('link');
/** The replica that waits for a client's answer. */
export const buildQuestionKey = defineSessionKeys('question');
/** That a session got a question by URL; `hash` is that of its id. */
export const buildElicitationKey = defineSessionKeys('elicitation');

/** The channel on which replicas talk about calls at servers that wait for an answer. */
export const buildSuspendedCallChannelName = defineKey('calls');
/** The outcome of such a call; `hash` is that of its id and user. */
export const buildSuspendedCallKey = defineKeys('call');
/** The bytes of those that nobody has taken: of all users, or of the one whose `sub` has this hash. */
export const buildSuspendedBytesKey = defineKeys('call-bytes');

/** §29: a task; `hash` is that of its id, its user and its path. */
export const buildTaskKey = defineKeys('task');
/** The tasks that count, those that run or what is kept: of all users, or of the one whose `sub` has this hash. */
export const buildTaskBudgetKey = (
  sessionKeyPrefix: string,
  counted: 'running' | 'kept',
  owner: string,
) => `${sessionKeyPrefix}tasks-${counted}:${owner}`;
/** That a replica with tasks is there. */
export const buildTaskReplicaKey = defineKeys('task-replica');
export const buildTasksChannelName = defineKey('tasks');

/** That the answers to what a server behind the gateway asked were passed on to it. */
export const buildRedeemedAnswersKey = defineKeys('answered');
/** A session's own session at a server behind the gateway; `hash` is that of the server. */
export const buildUpstreamSessionKey = defineSessionKeys('upstream');
/** The channel on which replicas hear that a session subscribed to other resources of such a server. */
export const buildUpstreamSubscriptionsChannelName = defineKeys('upstream');
/** The channel on which replicas pass on what a server asked, whose URL and name have this hash. */
export const buildQuestionsChannelName = defineKeys('questions');

/** The secret that all replicas seal with where the settings give none. */
export const buildSharedSecretKey = defineKey('secret');

/** §2.2. */
export const buildClientKey = (clientId: string) => `dcr:client:${clientId}`;
export const CLIENT_LIST_KEY = 'dcr:clients';

/** The last logins that failed. */
export const LOGIN_FAILURES_KEY = 'oauth:failures';

/** The users who called without a session. */
export const CALLER_LIST_KEY = 'admin:callers';
/** One of them; `hash` is that of the `sub`. */
export const buildCallerKey = defineGlobalKeys('admin:caller');

/** A record of a login; `hash` is that of the secret by which it is found. */
export const buildOAuthKey = (kind: string, hash: string) => `oauth:${kind}:${hash}`;

/** The login that the gateway's own tokens stand for. */
export const buildGrantKey = defineGlobalKeys('oauth:grant');
/** The list of one user's grants; `hash` is that of the user. */
export const buildUserGrantsKey = defineGlobalKeys('oauth:user-grants');
/** The list of those that one session at the provider has led to; `hash` is that of issuer and `sid`. */
export const buildSidGrantsKey = defineGlobalKeys('oauth:sid-grants');
export const GRANT_LIST_KEY = 'oauth:grants';
/** A grant in a list, which is that of a user, of a session at the provider, or `all`. */
export const buildListedGrantKey = (list: string, id: string) =>
  buildOAuthKey('listed-grant', `${list}:${id}`);

/** The number of times that many logins were ended at once. */
export const LOGOUT_COUNT_KEY = 'oauth:logouts';
/** That those of a user, by a client, of a session at the provider, or all were; `hash` is that of whose. */
export const buildLogoutKey = defineGlobalKeys('oauth:logout');

/** That a logout token of the provider came; `hash` is that of issuer and `jti`. */
export const buildLogoutTokenKey = defineGlobalKeys('oauth:logout-token');
/** That an assertion of a client was used; `hash` is that of client and `jti`. */
export const buildAssertionKey = defineGlobalKeys('oauth:client-assertion');
/** That an assertion about a user was used (ID-JAG); `hash` is that of issuer and `jti`. */
export const buildUserAssertionKey = defineGlobalKeys('oauth:user-assertion');
/** The grant of which a client that logs in as itself is given a token again; `hash` is that of client, scopes and resources. */
export const buildMachineGrantKey = defineGlobalKeys('oauth:machine-grant');
/** The client that got a token in broker mode; `hash` is that of the token. */
export const buildTokenClientKey = defineGlobalKeys('oauth:token-client');

/** §24: what lets the gateway act for one user at one server; `hash` is that of both. */
export const buildConnectionKey = defineGlobalKeys('connection:record');
/** Held by the replica that renews such a connection, or registers at an authorization server. */
export const buildConnectionLockKey = defineGlobalKeys('connection:lock');
/** The list of one user's connections; `hash` is that of the user. */
export const buildUserConnectionsKey = defineGlobalKeys('connection:user');
/** The list of those at one server; `hash` is that of its name. */
export const buildServerConnectionsKey = defineGlobalKeys('connection:server');
/** The list of those among them that need a login. */
export const buildServerLoginsNeededKey = defineGlobalKeys('connection:logins-needed');
/** A connection in a list of a user, of a server, or of those that need a login there. */
export const buildListedConnectionKey = (list: 'user' | 'server' | 'login-needed', hash: string) =>
  `connection:listed:${list}:${hash}`;

/** The client that the gateway is at an authorization server, where it registered there; `hash` is that of the issuer and BASE_URL. */
export const buildConnectionClientKey = defineGlobalKeys('connection:client');
/** Which authorization server the users of a server were sent to last; `hash` is that of BASE_URL and the server's name. */
export const buildConnectionIssuerKey = defineGlobalKeys('connection:issuer');
/** The link that a user was given a moment ago; `hash` is that of user, server and scopes. */
export const buildConnectionLinkKey = defineGlobalKeys('connection:link');

/** The key of a month by which the gateway logs in at authorization servers (RFC 7523). */
export const buildClientKeyName = (month: number) => `connection:signing-key:${month}`;
/** The key of a month by which the gateway signs what it tells servers of a caller (§18.6). */
export const buildIdentityKeyName = (month: number) => `identity:key:${month}`;
/** That the audit log has a line of today that says that a connection was renewed (§24.6). */
export const buildAuditedRenewalKey = defineGlobalKeys('connection:audited');

/** §27: a call that somebody is asked about; `hash` is that of the id of its request. */
export const buildApprovalKey = defineGlobalKeys('approval:request');
/** The request under way for a call; `hash` is that of user, client, call, and who is asked. */
export const buildApprovedCallKey = defineGlobalKeys('approval:call');
/** The list of requests of one user; `hash` is that of the user. */
export const buildUserApprovalsKey = defineGlobalKeys('approval:user');
export const APPROVAL_LIST_KEY = 'approval:all';
export const OPERATOR_APPROVALS_KEY = 'approval:operators';
/** A request in a list; `hash` is that of its id. */
export const buildListedApprovalKey = (list: 'user' | 'all' | 'operators', hash: string) =>
  `approval:listed:${list}:${hash}`;
/** That a call may run again in its session without a question; `hash` is that of session and call. */
export const buildSessionApprovalKey = defineGlobalKeys('approval:session');
/** The state of a call of several rounds (2026-07-28); `hash` is that of the secret in its state. */
export const buildApprovalRoundKey = defineGlobalKeys('approval:round');
export const buildApprovalsChannelName = defineKey('approvals');

/**
 * §2.8: `ratelimit:<group>:<counted>`, where what is counted is an address, `global`,
 * `anonymous`, `refused`, `user:<hash of sub>`, or `grant:<id>`.
 */
export const buildLimitKey = (group: string, counted: string) => `ratelimit:${group}:${counted}`;
/** The shares of such a window that processes have taken in advance; in its slot on a cluster. */
export const buildLeasedKey = (limitKey: string) => `ratelimit:leased:{${limitKey}}`;
/** That some of it was returned, by a command of this id. */
export const buildReturnedKey = (limitKey: string, id: string) =>
  `${buildLeasedKey(limitKey)}:returned:${id}`;
/** That any process has taken something in advance. */
export const LEASED_MARK_KEY = 'ratelimit:leased';

/** Users with an e-mail address, for operators; `mac` is that of the address. Those whom the provider says it belongs to have a list of their own. */
export const buildPersonKey = (mac: string, isVerified: boolean) =>
  `admin:person:${mac}${isVerified ? ':verified' : ''}`;
