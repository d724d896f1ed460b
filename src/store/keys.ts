// §2.1, §2.2, §2.8: builds all keys of the shared store, and the names of owners in them.
import { hashSha256 } from '../platform/ids.ts';
import type { Owner, SessionRecord } from './store.ts';

// Forms of most keys. Their last part, an ID or a hash, makes them unique.

/** One key. `sessionKeyPrefix` is `MCP_SESSION_KEY_PREFIX`. */
const defineKey = (name: string) => (sessionKeyPrefix: string) => sessionKeyPrefix + name;

/** Keys other than those of sessions. */
const defineKeys = (name: string) => (sessionKeyPrefix: string, hash: string) =>
  `${sessionKeyPrefix}${name}:${hash}`;

const defineSessionKeys =
  (name: string) => (sessionKeyPrefix: string, sessionId: string, hash: string) =>
    `${sessionKeyPrefix}${sessionId}:${name}:${hash}`;

/** Keys that do not depend on the prefix. */
const defineGlobalKeys = (start: string) => (hash: string) => `${start}:${hash}`;

/** §2.1: `<prefix><id>`; the prefix is `MCP_SESSION_KEY_PREFIX`. */
export const buildSessionKey = (sessionKeyPrefix: string, sessionId: string) =>
  sessionKeyPrefix + sessionId;
/** The sorted set of live sessions, scored by expiry. No session id reads `index`. */
export const buildSessionIndexKey = defineKey('index');
/** A short-lived key: a process deletes it to check that Redis takes writes, and sets it once to be notified. */
export const buildHeartbeatKey = defineKey('heartbeat');
/** The sorted set of a user's sessions, scored by expiry; `hash` is the hash of the `sub`. */
export const buildUserSessionsKey = defineKeys('user');

/** The channel between replicas. Channels ignore database numbers: only the prefix separates services that share a server. */
export const buildChannelName = defineKey('bus');
export const buildEndedGrantsChannelName = defineKey('ended-grants');
export const buildConnectionsChannelName = defineKey('connections');

/** A session's subscription to a resource; `hash` is the hash of its URI. */
export const buildSubscriptionKey = defineSessionKeys('subscription');
/** The number of the last stream that a session opened. */
export const buildStreamNumberKey = (sessionKeyPrefix: string, sessionId: string) =>
  `${sessionKeyPrefix}${sessionId}:stream`;
/** The sent messages of a session's stream, for replay to a client that resumes it. */
export const buildStreamLogKey = defineSessionKeys('stream-log');
/** The bytes of these messages: of all users, or of the one whose name has this hash. */
export const buildStreamBytesKey = defineKeys('stream-bytes');
/**
 * The server behind the gateway that named a resource in a result for the session, or for a caller without one; `hash` is the
 * hash of its URI.
 */
export const buildResourceLinkKey = defineSessionKeys('link');
/** The replica that waits for a client's answer. */
export const buildQuestionKey = defineSessionKeys('question');
/** A URL elicitation that a session received; `hash` is the hash of its ID. */
export const buildElicitationKey = defineSessionKeys('elicitation');

/** The channel between replicas for calls at servers that wait for an answer. */
export const buildSuspendedCallChannelName = defineKey('calls');
/** The outcome of such a call; `hash` is the hash of its ID and user. */
export const buildSuspendedCallKey = defineKeys('call');
/** The bytes of outcomes that were not fetched yet: of all users, or of the one whose `sub` has this hash. */
export const buildSuspendedBytesKey = defineKeys('call-bytes');

/** §29: a task; `hash` is the hash of its ID, its user and its path. */
export const buildTaskKey = defineKeys('task');
/** The budget of running or kept tasks: of all users, or of the one whose `sub` has this hash. */
export const buildTaskBudgetKey = (
  sessionKeyPrefix: string,
  counted: 'running' | 'kept',
  owner: string,
) => `${sessionKeyPrefix}tasks-${counted}:${owner}`;
/** The heartbeat of a replica with tasks. */
export const buildTaskReplicaKey = defineKeys('task-replica');
export const buildTasksChannelName = defineKey('tasks');

/** Marks answers to requests of an upstream server as passed on. */
export const buildRedeemedAnswersKey = defineKeys('answered');
/** A session's own session at an upstream server; `hash` is the hash of the server. */
export const buildUpstreamSessionKey = defineSessionKeys('upstream');
/** The channel between replicas for changed subscriptions of a session to resources of such a server. */
export const buildUpstreamSubscriptionsChannelName = defineKeys('upstream');
/** The channel that replicas use to pass on server-initiated requests; `hash` is the hash of the server's URL and name. */
export const buildQuestionsChannelName = defineKeys('questions');

/** The secret that all replicas seal with, unless the settings have one. */
export const buildSharedSecretKey = defineKey('secret');

/** §2.2. */
export const buildClientKey = (clientId: string) => `dcr:client:${clientId}`;
export const CLIENT_LIST_KEY = 'dcr:clients';

/** The last failed logins. */
export const LOGIN_FAILURES_KEY = 'oauth:failures';

/** The users who called without a session. */
export const CALLER_LIST_KEY = 'admin:callers';
/** One of them; `hash` is the hash of the `sub`. */
export const buildCallerKey = defineGlobalKeys('admin:caller');

/** §22.8: batches of calls, and their list. */
export const CALLS_LIST_KEY = 'admin:calls';
export const buildCallsKey = defineGlobalKeys('admin:call-batch');

/** A record of a login; `hash` is the hash of the secret that finds it. */
export const buildOAuthKey = (kind: string, hash: string) => `oauth:${kind}:${hash}`;

/** The grant of the gateway's own tokens. */
export const buildGrantKey = defineGlobalKeys('oauth:grant');
/** The list of one user's grants; `hash` is the hash of the user. */
export const buildUserGrantsKey = defineGlobalKeys('oauth:user-grants');
/** The list of grants from one session at the provider; `hash` is the hash of issuer and `sid`. */
export const buildSidGrantsKey = defineGlobalKeys('oauth:sid-grants');
export const GRANT_LIST_KEY = 'oauth:grants';
/** A grant in a list: a user's, that of a session at the provider, or `all`. */
export const buildListedGrantKey = (list: string, id: string) =>
  buildOAuthKey('listed-grant', `${list}:${id}`);

/** Counts the events that ended many logins at once. */
export const LOGOUT_COUNT_KEY = 'oauth:logouts';
/** Marks the logins of a user, of a client, of a session at the provider, or all, as ended; `hash` names which. */
export const buildLogoutKey = defineGlobalKeys('oauth:logout');

/** Marks a logout token from the provider as received; `hash` is the hash of issuer and `jti`. */
export const buildLogoutTokenKey = defineGlobalKeys('oauth:logout-token');
/** Marks a client's assertion as used; `hash` is the hash of client and `jti`. */
export const buildAssertionKey = defineGlobalKeys('oauth:client-assertion');
/** Marks an assertion about a user (ID-JAG) as used; `hash` is the hash of issuer and `jti`. */
export const buildUserAssertionKey = defineGlobalKeys('oauth:user-assertion');
/** The grant that a machine client gets further tokens for; `hash` is the hash of client, scopes and resources. */
export const buildMachineGrantKey = defineGlobalKeys('oauth:machine-grant');
/** The client that got a token in broker mode; `hash` is the hash of the token. */
export const buildTokenClientKey = defineGlobalKeys('oauth:token-client');

/** §24: the connection of one user to one server; `hash` is the hash of both. */
export const buildConnectionKey = defineGlobalKeys('connection:record');
/** The lease of the replica that refreshes such a connection, or registers with an authorization server. */
export const buildConnectionLockKey = defineGlobalKeys('connection:lock');
/** The list of one user's connections; `hash` is the hash of the user. */
export const buildUserConnectionsKey = defineGlobalKeys('connection:user');
/** The list of connections to one server; `hash` is the hash of its name. */
export const buildServerConnectionsKey = defineGlobalKeys('connection:server');
/** The list of connections to it that need a login. */
export const buildServerLoginsNeededKey = defineGlobalKeys('connection:logins-needed');
/** A connection in one of these lists. */
export const buildListedConnectionKey = (list: 'user' | 'server' | 'login-needed', hash: string) =>
  `connection:listed:${list}:${hash}`;

/** The gateway's client registration at an authorization server; `hash` is the hash of the issuer and BASE_URL. */
export const buildConnectionClientKey = defineGlobalKeys('connection:client');
/** The authorization server that a server's users were last sent to; `hash` is the hash of BASE_URL and the server's name. */
export const buildConnectionIssuerKey = defineGlobalKeys('connection:issuer');
/** The link that a user was given recently; `hash` is the hash of user, server and scopes. */
export const buildConnectionLinkKey = defineGlobalKeys('connection:link');

/** The signing key of a month for client authentication at authorization servers (RFC 7523). */
export const buildClientKeyName = (month: number) => `connection:signing-key:${month}`;
/** The signing key of a month for caller identities that servers get (§18.6). */
export const buildIdentityKeyName = (month: number) => `identity:key:${month}`;
/** Marks that today's audit log has a line for a refreshed connection (§24.6). */
export const buildAuditedRenewalKey = defineGlobalKeys('connection:audited');

/** Marks that operators were notified of a subject (§22.7); `hash` is its hash. */
export const buildNotificationKey = defineGlobalKeys('admin:notified');

/** §27: a request for approval of a call; `hash` is the hash of its ID. */
export const buildApprovalKey = defineGlobalKeys('approval:request');
/** The pending request for a call; `hash` is the hash of user, client, call and approver. */
export const buildApprovedCallKey = defineGlobalKeys('approval:call');
/** The list of requests of one user; `hash` is the hash of the user. */
export const buildUserApprovalsKey = defineGlobalKeys('approval:user');
export const APPROVAL_LIST_KEY = 'approval:all';
export const OPERATOR_APPROVALS_KEY = 'approval:operators';
/** A request in a list; `hash` is the hash of its ID. */
export const buildListedApprovalKey = (list: 'user' | 'all' | 'operators', hash: string) =>
  `approval:listed:${list}:${hash}`;
/** Marks a call as approved for its session; `hash` is the hash of session and call. */
export const buildSessionApprovalKey = defineGlobalKeys('approval:session');
/** The state of a call of several rounds (2026-07-28); `hash` is the hash of the secret in its state. */
export const buildApprovalRoundKey = defineGlobalKeys('approval:round');
export const buildApprovalsChannelName = defineKey('approvals');

/**
 * §2.8: `ratelimit:<group>:<counted>`; `counted` is an address, `global`, `anonymous`, `refused`, `user:<hash of sub>`, or
 * `grant:<id>`.
 */
export const buildLimitKey = (group: string, counted: string) => `ratelimit:${group}:${counted}`;
/** The permits of such a window that processes have leased; in its slot on a cluster. */
export const buildLeasedKey = (limitKey: string) => `ratelimit:leased:{${limitKey}}`;
/** Marks permits as returned by a command with this ID. */
export const buildReturnedKey = (limitKey: string, id: string) =>
  `${buildLeasedKey(limitKey)}:returned:${id}`;
/** Marks that any process has leased permits. */
export const LEASED_MARK_KEY = 'ratelimit:leased';

/**
 * Users with an e-mail address, for operators; `mac` is the MAC of the address. Users with a verified address have a separate
 * list.
 */
export const buildPersonKey = (mac: string, isVerified: boolean) =>
  `admin:person:${mac}${isVerified ? ':verified' : ''}`;

// §2.1: names and compares owners of records. A `sub` is unique only within its issuer (OpenID Connect Core §5.7).

/** The start of names of other issuers' users. */
const OTHER_ISSUER = '["';

/** Names a user uniquely, in memory, and hashed in keys. No `sub` can collide with another issuer's user. */
export const nameOwner = ({ sub, issuer }: Owner): string =>
  issuer === undefined && !sub.startsWith(OTHER_ISSUER) ? sub : JSON.stringify([issuer ?? '', sub]);

/** Hashes the name of an owner for keys, whose size is limited. */
export const hashOwner = (owner: Owner): string => hashSha256(nameOwner(owner));

export type OwnedRecord = Pick<SessionRecord, 'userId' | 'userIssuer'>;

/** Undefined for a record without an owner. */
export const readOwner = ({ userId, userIssuer }: OwnedRecord): Owner | undefined =>
  userId === undefined ? undefined : { sub: userId, issuer: userIssuer };

/** Leaves out the issuer if it is the default one (`OIDC_ISSUER`). */
export const withoutDefault = (owner: Owner, defaultIssuer: string | undefined): Owner =>
  owner.issuer === defaultIssuer ? { sub: owner.sub } : owner;

/** Without authentication neither sessions nor requests have an owner. */
export const isOwnedBy = ({ userId, userIssuer }: OwnedRecord, owner: Owner | undefined): boolean =>
  userId === owner?.sub && userIssuer === owner?.issuer;
