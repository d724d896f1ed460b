// §7: the catalogue of all errors that the service returns. The error page is generated from this table.

/** The RFC 6749 §4.1.2.1, §5.2 and RFC 7591 §3.2.2 codes in use (§7.3). */
export type OAuthErrorCode =
  | 'invalid_request'
  | 'invalid_client'
  | 'invalid_client_metadata'
  | 'invalid_grant'
  | 'invalid_redirect_uri'
  | 'invalid_scope'
  | 'invalid_target'
  | 'invalid_token'
  | 'server_error'
  | 'temporarily_unavailable'
  | 'unsupported_grant_type'
  | 'unsupported_response_type';

/**
 * One error. If it has both forms, JSON-RPC and OAuth, the route determines which one is sent; a single form is sent everywhere
 * (§7.5: 403, 404, 405 and 429 are JSON-RPC on every endpoint).
 */
export interface ErrorRow {
  readonly status: number;
  /** §7.1: the JSON-RPC form. */
  readonly jsonrpc?: { readonly code: number; readonly message: string; readonly reason?: string };
  /**
   * §7.3: the OAuth form. `body` stands for the route's own code for an unreadable body, `limit` for its code for a rate limit. A
   * route without a code for limits sends the JSON-RPC form.
   */
  readonly oauth?: OAuthErrorCode | 'body' | 'limit';
  /** One sentence about the problem and the allowed values, the default for `data.details` and `error_description`. */
  readonly details: string;
  /** Set if the status alone does not determine the level. */
  readonly logLevel?: 'debug' | 'warn';
}

type JsonRpcFace = NonNullable<ErrorRow['jsonrpc']>;

const defineJsonRpcError = (status: number, jsonrpc: JsonRpcFace, details: string) => ({
  status,
  jsonrpc,
  details,
});

const METHOD_NOT_FOUND = { code: -32601, message: 'Method not found' };
const INVALID_PARAMS = { code: -32602, message: 'Invalid params' };
const INTERNAL_ERROR = { code: -32603, message: 'Internal error' };
const TOOL_FAILED = { code: -32603, message: 'Tool execution failed' };

/** Uses HTTP's words for the status, so that the error cannot be distinguished from others with this status. */
const defineHttpError = (status: number, message: string, details: string) =>
  defineJsonRpcError(status, { code: -32000, message }, details);

/** A refusal that clients recognize by its reason. */
const defineRefusal = (status: number, message: string, reason: string, details: string) =>
  defineJsonRpcError(status, { code: -32000, message, reason }, details);

const defineUnauthorized = (reason: string, details: string) =>
  defineJsonRpcError(401, { code: -32001, message: 'Unauthorized', reason }, details);

const defineOAuthError = (status: number, oauth: OAuthErrorCode, details: string) => ({
  status,
  oauth,
  details,
});

/** An OAuth error that persists until an operator changes a setting here or at the provider. */
const defineMisconfiguration = (what: string) =>
  ({
    ...defineOAuthError(
      502,
      'server_error',
      `The gateway is misconfigured; this is not the user's fault. ${what}`,
    ),
    logLevel: 'warn',
  }) as const;

const CLIENT_UNKNOWN =
  'The client is unknown or its registration has expired. Remove the server in the client, and add it again, so that it registers once more.';

export const catalogue = {
  // §7.1: bearer tokens.
  missing_token: defineUnauthorized(
    'missing_token',
    'The request has no access token. Send the header Authorization: Bearer <access token>.',
  ),
  invalid_format: defineUnauthorized(
    'invalid_format',
    'The Authorization header must have the form Bearer <access token>.',
  ),
  invalid_token: defineUnauthorized(
    'invalid_token',
    'The token is malformed or its signature is not valid.',
  ),
  expired_token: defineUnauthorized('expired_token', 'The token has expired.'),
  token_revoked: defineUnauthorized(
    'token_revoked',
    'The login that this token belongs to has ended. Log in again.',
  ),
  invalid_issuer: defineUnauthorized('invalid_issuer', 'The token was issued by another provider.'),
  invalid_audience: defineUnauthorized(
    'invalid_audience',
    'The token was issued for a different audience.',
  ),
  missing_claim: defineUnauthorized(
    'missing_claim',
    'The token has no sub claim, or it is not a non-empty string.',
  ),
  /** 403, since another login with the same provider would not help. Only operators learn which list refused the user. */
  user_not_allowed: defineRefusal(
    403,
    'Forbidden',
    'user_not_allowed',
    'The user of this access token may not use this gateway. Ask its administrator for access.',
  ),
  /** 200, since a 401 would make clients start a login, which does not exist without authentication. */
  user_required: defineJsonRpcError(
    200,
    { code: -32001, message: 'Unauthorized', reason: 'missing_token' },
    'This needs a logged-in user, but the gateway runs without authentication (AUTH_REQUIRED=false).',
  ),

  // §7.2: sessions and rate limits.
  missing_session_id: defineRefusal(
    400,
    'Bad Request',
    'missing_session_id',
    'Send initialize first. Then send the mcp-session-id header of its response with every request.',
  ),
  session_not_found: defineRefusal(
    404,
    'Invalid or expired session',
    'session_not_found',
    'The session does not exist or has expired. Send initialize to start a new one.',
  ),
  /** §4.5: for DELETE, the refusal has a different message. */
  session_to_end_not_found: defineRefusal(
    404,
    'Session not found',
    'session_not_found',
    'The session does not exist or has already ended.',
  ),
  unsupported_protocol_version: defineRefusal(
    400,
    'Bad Request',
    'unsupported_protocol_version',
    'The MCP-Protocol-Version header names a version that is not supported.',
  ),
  rate_limit_exceeded: {
    ...defineRefusal(
      429,
      'Too Many Requests',
      'rate_limit_exceeded',
      'Too many requests from this address.',
    ),
    oauth: 'limit',
  },
  global_rate_limit_exceeded: {
    ...defineRefusal(
      429,
      'Too Many Requests',
      'global_rate_limit_exceeded',
      'Too many requests to this service.',
    ),
    oauth: 'limit',
  },
  grant_rate_limit_exceeded: defineOAuthError(
    429,
    'temporarily_unavailable',
    'Too many token requests of this login.',
  ),

  user_rate_limit_exceeded: defineRefusal(
    429,
    'Too Many Requests',
    'user_rate_limit_exceeded',
    'Too many requests from this user.',
  ),
  /** §29: sent instead of the result of a lost task. */
  task_lost: defineJsonRpcError(
    200,
    { ...INTERNAL_ERROR, reason: 'task_lost' },
    'The replica of the gateway that ran this task has stopped. The task may have been carried out in part. Call again if that does no harm.',
  ),
  task_expired: defineJsonRpcError(
    200,
    { ...INTERNAL_ERROR, reason: 'task_expired' },
    'The task ran for longer than MCP_TASK_TTL_SECONDS allows, and was stopped.',
  ),
  task_result_too_large: defineJsonRpcError(
    200,
    { ...INTERNAL_ERROR, reason: 'task_result_too_large' },
    'The task has finished, but its result is too large to be stored.',
  ),
  /** §29: there are too many tasks of one user, or in total. */
  too_many_tasks: defineRefusal(
    429,
    'Too Many Requests',
    'too_many_tasks',
    'Too many tasks are running, for this user (MCP_USER_TASKS_MAX) or in total. Wait for one to end, or cancel one.',
  ),
  too_many_calls: defineRefusal(
    429,
    'Too Many Requests',
    'too_many_calls',
    'This user has too many calls running (MCP_USER_CALLS_MAX). Wait for one to finish.',
  ),

  // §22: the operators' page.
  operators_only: defineRefusal(
    403,
    'Forbidden',
    'operators_only',
    'This is for operators only. According to your login or access token, you are in none of the groups in ADMIN_GROUPS.',
  ),
  operators_client_only: defineRefusal(
    403,
    'Forbidden',
    'operators_client_only',
    "This access token was issued to another client than the operators' page. Log in at /admin, or use a token of a client that ADMIN_CLIENTS names.",
  ),
  client_not_found: defineRefusal(
    404,
    'Client not found',
    'client_not_found',
    'There is no such registered client, or it was deleted.',
  ),
  approval_not_found: defineRefusal(
    404,
    'Approval not found',
    'approval_not_found',
    'No call with this ID waits for operators: it has been decided, or has expired after ten minutes.',
  ),
  grant_not_found: defineRefusal(
    404,
    'Login not found',
    'grant_not_found',
    'There is no such login, or it has ended.',
  ),
  grants_not_ended: defineJsonRpcError(
    500,
    { code: -32603, message: 'Not all logins have ended', reason: 'grants_not_ended' },
    'The store failed for some of the logins. Send the request again.',
  ),
  server_not_found: defineRefusal(
    404,
    'Server not found',
    'server_not_found',
    'The configuration file has no server with this name.',
  ),
  lock_not_approvable: defineRefusal(
    409,
    'Conflict',
    'lock_not_approvable',
    'Nothing can be approved here. Run postern lock where the configuration file is.',
  ),
  lock_changed: defineRefusal(
    409,
    'Conflict',
    'lock_changed',
    'The lists of these servers, or their approvals, have changed since you loaded them. Nothing was approved. Load them again.',
  ),
  lock_server_unread: defineRefusal(
    409,
    'Conflict',
    'lock_server_unread',
    'A server could not be read. Nothing was approved.',
  ),
  lock_not_written: defineRefusal(
    500,
    'Internal error',
    'lock_not_written',
    'postern.lock could not be written. Nothing was approved.',
  ),

  // §7.1: JSON-RPC.
  parse_error: {
    ...defineJsonRpcError(
      400,
      { code: -32700, message: 'Parse error' },
      'The body is not valid JSON in UTF-8.',
    ),
    oauth: 'body',
  },
  invalid_request: defineJsonRpcError(
    400,
    { code: -32600, message: 'Invalid Request' },
    'The body is not a JSON-RPC 2.0 message.',
  ),
  method_not_found: defineJsonRpcError(200, METHOD_NOT_FOUND, 'This method does not exist.'),
  invalid_params: defineJsonRpcError(
    200,
    INVALID_PARAMS,
    'The params do not match those that the method expects.',
  ),
  /** From 2025-11-25 on, this is a result for the model to read, and its first line is this message. */
  invalid_tool_input: defineJsonRpcError(
    200,
    INVALID_PARAMS,
    "The arguments do not match the tool's input schema.",
  ),
  /** MCP "Cancellation": the client stopped waiting for the request. */
  request_cancelled: defineRefusal(
    200,
    'Request cancelled',
    'request_cancelled',
    'The client cancelled this request.',
  ),
  client_cannot_be_asked: defineJsonRpcError(
    200,
    TOOL_FAILED,
    'This needs a response from the client. The client must declare the capability, and accept text/event-stream.',
  ),
  client_silent: defineJsonRpcError(
    200,
    TOOL_FAILED,
    'The client did not respond to the request in time.',
  ),
  /** §18.5, RFC 6750 §3.1: a rule requires scopes that the token does not have. */
  insufficient_scope: defineRefusal(
    403,
    'Forbidden',
    'insufficient_scope',
    'The access token lacks a scope that this call needs. Request it, and call again.',
  ),
  /** §18.4: passed on unchanged from the server behind the gateway. */
  upstream_error: defineJsonRpcError(
    200,
    INTERNAL_ERROR,
    'The server behind the gateway answered with an error.',
  ),
  tool_failed: defineJsonRpcError(200, TOOL_FAILED, 'The tool failed unexpectedly.'),
  method_failed: defineJsonRpcError(
    200,
    INTERNAL_ERROR,
    "The method failed unexpectedly. The gateway's log has the reason.",
  ),

  // MCP 2026-07-28: requests without a session.
  invalid_envelope: defineJsonRpcError(
    400,
    INVALID_PARAMS,
    "params._meta must contain the protocol version and the client's capabilities.",
  ),
  header_mismatch: defineJsonRpcError(
    400,
    { code: -32020, message: 'Header mismatch' },
    'The headers MCP-Protocol-Version, Mcp-Method and Mcp-Name must match the body.',
  ),
  missing_client_capability: defineJsonRpcError(
    400,
    { code: -32021, message: 'Missing required client capability' },
    'This needs a capability that the client did not declare.',
  ),
  unsupported_version: defineJsonRpcError(
    400,
    { code: -32022, message: 'Unsupported protocol version' },
    'This protocol version is not supported. data.supported lists the supported versions.',
  ),
  unknown_method: defineJsonRpcError(404, METHOD_NOT_FOUND, 'This method does not exist.'),

  // §7.4, §7.5: every endpoint.
  invalid_origin: defineRefusal(
    403,
    'Forbidden',
    'invalid_origin',
    'This Origin is not allowed. ALLOWED_ORIGINS lists the allowed origins.',
  ),
  invalid_host: defineRefusal(
    403,
    'Forbidden',
    'invalid_host',
    'This Host is not allowed. BASE_URL and ALLOWED_HOSTS name the allowed hosts.',
  ),
  bad_request: defineHttpError(400, 'Bad Request', 'The request is not valid HTTP.'),
  request_timeout: {
    ...defineHttpError(408, 'Request Timeout', 'The request did not arrive in time.'),
    oauth: 'body',
  },
  header_too_large: defineHttpError(
    431,
    'Request Header Fields Too Large',
    'The headers are too large. The limit is MAX_TOKEN_BYTES plus 16 KiB.',
  ),
  not_found: {
    ...defineHttpError(
      404,
      'Not Found',
      'This path does not exist. The MCP endpoint is /mcp, and /mcp/<name> for one server in the configuration file.',
    ),
    // Scanners request paths that do not exist.
    logLevel: 'debug',
  },
  method_not_allowed: {
    ...defineHttpError(
      405,
      'Method Not Allowed',
      'This path does not support this method. The Allow header lists the supported methods.',
    ),
    // Every client requests a stream when it connects.
    logLevel: 'debug',
  },
  not_acceptable: defineHttpError(
    406,
    'Not Acceptable',
    'The response is an event stream. Send Accept: text/event-stream.',
  ),
  /** §15.1. */
  unknown_event_id: defineRefusal(
    400,
    'Bad Request',
    'unknown_event_id',
    'The Last-Event-ID header is not the ID of an event in this session. Send the ID of the last event that a stream of the session delivered, or omit the header.',
  ),
  stream_lost: defineJsonRpcError(
    200,
    { code: -32603, message: 'The response is lost', reason: 'stream_lost' },
    'The events of this stream are no longer stored. The call may have run: check before you call again.',
  ),
  too_many_streams: defineRefusal(
    503,
    'Service Unavailable',
    'too_many_streams',
    'Too many streams are open, for this user or in total. Close one, or try again later.',
  ),
  body_too_large: {
    ...defineHttpError(413, 'Content Too Large', 'The body is larger than MAX_BODY_BYTES allows.'),
    oauth: 'body',
  },
  incomplete_body: {
    ...defineHttpError(400, 'Bad Request', 'The request ended before its body was complete.'),
    oauth: 'body',
  },
  overloaded: {
    ...defineHttpError(
      503,
      'Service Unavailable',
      'The gateway is receiving too many requests. Try again in a moment.',
    ),
    oauth: 'server_error',
  },
  /** §21.1: `AUDIT_REQUIRED=true`. */
  audit_unavailable: defineRefusal(
    503,
    'Service Unavailable',
    'audit_unavailable',
    'The call did not run, because the gateway cannot write its audit log. Its operator has to free disk space. Try again later.',
  ),
  unsupported_media_type: {
    ...defineHttpError(
      415,
      'Unsupported Media Type',
      'This endpoint does not accept this Content-Type.',
    ),
    oauth: 'body',
  },
  unsupported_content_coding: {
    ...defineHttpError(
      415,
      'Unsupported Media Type',
      'The body is compressed (Content-Encoding). Send it uncompressed, without that header.',
    ),
    oauth: 'body',
  },
  internal_error: {
    ...defineHttpError(
      500,
      'Internal Server Error',
      'Something went wrong in the gateway. Its log has the reason. Try again.',
    ),
    oauth: 'server_error',
  },
  /** §7.1: a failure of the gateway, like the one above: never "not found", and not a reason to log in again. */
  store_unavailable: {
    ...defineHttpError(
      500,
      'Internal Server Error',
      'The store of this gateway does not answer. Try again shortly.',
    ),
    oauth: 'server_error',
  },
  /** Not 401, which would make the user log in again. */
  key_set_unavailable: defineHttpError(
    503,
    'Service Unavailable',
    "The provider's keys could not be fetched, so the token cannot be checked. Try again in a moment.",
  ),

  // §7.3: OAuth.
  oauth_invalid_request: defineOAuthError(
    400,
    'invalid_request',
    'A parameter is missing or invalid.',
  ),
  unsupported_response_type: defineOAuthError(
    400,
    'unsupported_response_type',
    'response_type must be code.',
  ),
  unsupported_grant_type: defineOAuthError(
    400,
    'unsupported_grant_type',
    'grant_type must be authorization_code or refresh_token. A gateway whose configuration file has clients also accepts client_credentials, and one with ID_JAG=true urn:ietf:params:oauth:grant-type:jwt-bearer.',
  ),
  unknown_client: defineOAuthError(400, 'invalid_client', CLIENT_UNKNOWN),
  unauthenticated_client: defineOAuthError(401, 'invalid_client', CLIENT_UNKNOWN),
  /** RFC 6749 §5.2. Does not say what is wrong, or whether the client exists; the log does. */
  unauthenticated_machine: defineOAuthError(
    401,
    'invalid_client',
    'The client could not be authenticated. Compare its ID and its secret or key with the configuration file of the gateway, and check its clock. The gateway log has the details.',
  ),
  client_keys_unavailable: defineOAuthError(
    503,
    'temporarily_unavailable',
    'The keys of the client could not be fetched, so it cannot be authenticated. Try again in a moment.',
  ),
  /**
   * RFC 7523 §3.1. Gives no details, which are only in the log, so that attackers do not learn which assertions would be accepted.
   */
  unusable_assertion: defineOAuthError(
    400,
    'invalid_grant',
    'The gateway does not accept this assertion from this client. See the gateway log for details, and get a new assertion from the identity provider.',
  ),
  /** The user is known but not allowed; only the log gives the reason. */
  asserted_user_refused: defineOAuthError(
    400,
    'invalid_grant',
    'This user may not use this gateway. Ask its administrator for access.',
  ),
  /** Not `invalid_grant`: the assertion may be valid. */
  assertion_keys_unavailable: defineOAuthError(
    503,
    'temporarily_unavailable',
    'The keys of the identity provider could not be fetched, so the assertion cannot be checked. Try again in a moment.',
  ),
  unregistered_redirect_uri: defineOAuthError(
    400,
    'invalid_redirect_uri',
    'The redirect_uri is not registered for this client.',
  ),
  invalid_redirect_uri: defineOAuthError(
    400,
    'invalid_redirect_uri',
    'A redirect URI must be https, http with a loopback host, or a scheme of OAUTH_REDIRECT_SCHEMES, without a fragment.',
  ),
  invalid_grant: defineOAuthError(
    400,
    'invalid_grant',
    'The redirect_uri does not match the one that the client registered.',
  ),
  /** RFC 6749 §4.1.2. */
  authorization_code_reused: defineOAuthError(
    400,
    'invalid_grant',
    'The code was already used. Its login has ended: log in again.',
  ),
  /** RFC 9700 §4.14.2. */
  refresh_token_reused: defineOAuthError(
    400,
    'invalid_grant',
    'The refresh token was already replaced, and its successor is in use. The login has ended: log in again.',
  ),
  /** OpenID Connect Back-Channel Logout §2.8. */
  invalid_logout_token: {
    ...defineOAuthError(400, 'invalid_request', 'The logout token is not accepted.'),
    logLevel: 'warn',
  },
  /** The provider has to send the logout token again. */
  logout_unfinished: defineOAuthError(
    503,
    'temporarily_unavailable',
    'The logout could not be finished. Send the same request again in a moment.',
  ),
  invalid_client_metadata: defineOAuthError(
    400,
    'invalid_client_metadata',
    'The client metadata is invalid.',
  ),
  /** RFC 8707 §2. */
  invalid_target: defineOAuthError(
    400,
    'invalid_target',
    'The resource does not belong to this gateway.',
  ),
  /** RFC 6749 §6: a refresh may narrow the granted scope, but never widen it. */
  invalid_scope: defineOAuthError(
    400,
    'invalid_scope',
    'The login does not include all of these scopes. Request fewer, or log in again.',
  ),
  /** RFC 7591 §3, RFC 6750 §3.1. */
  registration_token_required: defineOAuthError(
    401,
    'invalid_token',
    "Registration requires the gateway's initial access token (DCR_ACCESS_TOKEN).",
  ),
  not_configured: defineOAuthError(500, 'server_error', 'A required setting is missing.'),
  /** §5.11. Not `invalid_grant`, which would log the user out because of an outage. */
  renewal_unavailable: defineOAuthError(
    503,
    'temporarily_unavailable',
    'The identity provider has been unreachable for some time, so this login could not be verified. Try again in a minute; you are not logged out.',
  ),
  /** §12: the provider stalls, or cannot keep up with its clients. */
  provider_busy: defineOAuthError(
    503,
    'server_error',
    'Too many requests are waiting for the identity provider. Try again in a few seconds.',
  ),
  /** Not `invalid_client` or `invalid_grant`, which would make clients discard valid registrations and logins. */
  gateway_refused_by_provider: defineMisconfiguration(
    "The identity provider rejected the gateway's own client (OAUTH_CLIENT_ID, OAUTH_CLIENT_SECRET, OAUTH_CLIENT_AUTH).",
  ),
  gateway_request_refused: defineMisconfiguration(
    "The identity provider rejected the gateway's request.",
  ),
  unusable_id_token: defineMisconfiguration(
    "The gateway would not accept the identity provider's ID token.",
  ),
  unusable_identity: defineMisconfiguration(
    'The gateway could not use the claims of the identity provider about the user.',
  ),
  unusable_provider_answer: {
    ...defineOAuthError(
      502,
      'server_error',
      'The identity provider sent a response that the gateway cannot use.',
    ),
    logLevel: 'warn',
  },
  upstream_failed: defineOAuthError(
    502,
    'server_error',
    'The identity provider could not be reached. Try again in a moment.',
  ),
} satisfies Record<string, ErrorRow>;

export type ErrorKey = keyof typeof catalogue;
