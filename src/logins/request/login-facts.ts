// §21.1, §22.4: the facts about each request to the OAuth endpoints, for the log, the audit log and the list of failed logins.

import { GatewayError, toGatewayError } from '../../errors/gateway-error.ts';
import type { AuthRequest } from '../../http/endpoint/bearer.ts';
import type { Endpoint, JudgedRequest } from '../../http/endpoint/endpoint.ts';
import type { GatewayRequest, Reply, RequestBody } from '../../http/endpoint/message.ts';
import { hasTooManyParameters } from '../../http/endpoint/parameters.ts';
import { toAddressKey } from '../../platform/address.ts';
import type { Clock } from '../../platform/clock.ts';
import { isObject, parseObject } from '../../platform/json.ts';
import { type ClockAndLog, type Log, truncateForLog } from '../../platform/log.ts';
import { stripUrisIn } from '../../platform/secret-texts.ts';
import { createWarnThrottle } from '../../platform/throttle.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { LOGIN_FAILURES_KEY } from '../../store/keys.ts';
import type { Audit, AuditEvent } from '../../telemetry/audit/audit.ts';
import { getTraceId } from '../../telemetry/tracing/tracing.ts';

/** Among the facts about a reply or an error. */
export type LoginFacts = {
  /** OAuth client ID, as sent. */
  client?: string;
  /** `sub` of the user who got a token. */
  user?: string;
  /** Issuer of that user; absent if only users of `OIDC_ISSUER` can be meant. */
  issuer?: string;
  /** The rejected member of the provider's answer, such as a claim of its ID token. */
  member?: string;
  /** ID of the grant, if the gateway issues its own tokens. */
  grantId?: string;
  /** Requested grant type. */
  grant?: GrantType;
};

export const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';

type GrantType = (typeof GRANT_TYPES)[number];

const GRANT_TYPES = [
  'authorization_code',
  'refresh_token',
  'client_credentials',
  JWT_BEARER,
] as const;

const GRANT_TYPES_BY_NAME = new Map<unknown, GrantType>(GRANT_TYPES.map((name) => [name, name]));

/** Facts of a query or body that is not validated yet. One that is too long to be served is not read. */
export function readAskedFacts(source: string | RequestBody): LoginFacts {
  let client: unknown;
  let grantType: unknown;
  if (typeof source !== 'string' && source.type === 'json') {
    if (isObject(source.value)) ({ client_id: client, grant_type: grantType } = source.value);
  } else {
    const text = typeof source === 'string' ? source : source.text;
    if (hasTooManyParameters(text)) return {};
    for (const [name, value] of new URLSearchParams(text)) {
      // RFC 6749 §3.1: a parameter without a value counts as omitted.
      if (value === '') continue;
      if (name === 'client_id') client ??= value;
      if (name === 'grant_type') grantType ??= value;
    }
  }
  const grant = GRANT_TYPES_BY_NAME.get(grantType);
  return {
    ...(typeof client === 'string' && client !== '' && { client: truncateForLog(client) }),
    ...(grant && { grant }),
  };
}

/**
 * Adds facts to the reply or the error of a request, which may have more accurate ones. `facts` may be filled in as they become
 * known: they are read at the end. `report` gets the outcome.
 */
export async function addFacts(
  facts: LoginFacts,
  judging: JudgedRequest | Promise<JudgedRequest>,
  report?: (facts: Reply['facts'], failure: LoginProblem | undefined) => void,
): Promise<JudgedRequest> {
  let judged: JudgedRequest;
  try {
    judged = await judging;
  } catch (thrown) {
    throw reportError(thrown);
  }
  const pending = 'runAnonymous' in judged ? judged.runAnonymous : judged;
  return 'runAnonymous' in judged ? { runAnonymous: run } : run;

  async function run(): Promise<Reply> {
    let reply: Reply;
    try {
      reply = await pending();
    } catch (thrown) {
      throw reportError(thrown);
    }
    const known = { ...facts, ...reply.facts };
    // A reply may carry a failure though nothing was thrown.
    report?.(known, reply.error ?? (reply.status >= 400 ? UNNAMED : undefined));
    return { ...reply, facts: known };
  }

  function reportError(thrown: unknown) {
    const { key, message, failure } = toGatewayError(thrown);
    const known = { ...facts, ...failure.facts };
    report?.(known, { key, message });
    return new GatewayError(key, { ...failure, details: message, facts: known });
  }
}

/** A refusal by the provider without an error code. */
const UNNAMED = { key: 'refused_by_provider', message: 'The provider refused, without a reason.' };

/** Outcome of one request. */
interface LoginRecord {
  readonly step: EndpointName;
  readonly facts: LoginFacts;
  /** Undefined if nothing failed. */
  readonly failure: LoginProblem | undefined;
  readonly request: GatewayRequest;
  readonly seconds: number;
}

/** `key` is one of the error catalogue, or the log's name for a refusal by provider or user. */
interface LoginProblem {
  readonly key: string;
  readonly message: string;
}

type EndpointName = Exclude<LoginStep, 'call'> | 'revoke';

/** Errors that an observer throws are logged, and reach no client. */
type LoginObserver = (record: LoginRecord) => void;

/** Keyed by path. The facts are in the query or body, or known to the handler only. */
const OBSERVED = new Map<string, readonly [step: EndpointName, asks?: 'query' | 'body']>([
  ['/oauth/register', ['register']],
  ['/oauth/authorize', ['authorize', 'query']],
  ['/oauth/consent', ['consent']],
  ['/oauth/callback', ['callback']],
  ['/oauth/token', ['token', 'body']],
  ['/oauth/revoke', ['revoke', 'body']],
]);

/**
 * Wraps the OAuth endpoints: replies and errors get their facts, and observers get the outcome. Observers do not see requests
 * that a limit refuses.
 */
export function observeLogins(
  { clock, log }: ClockAndLog,
  endpoints: readonly Endpoint[],
  observers: readonly LoginObserver[],
): readonly Endpoint[] {
  return endpoints.map((endpoint) => {
    const [step, asks] = OBSERVED.get(endpoint.path) ?? [];
    if (step === undefined || endpoint.kind !== 'public') return endpoint;
    const { judge } = endpoint;
    return {
      ...endpoint,
      async judge(request, body) {
        const startedAt = clock.monotonic();
        const asked = asks ? readAskedFacts(asks === 'query' ? request.query : body) : {};
        return addFacts(asked, judge(request, body), (facts, failure) => {
          const seconds = (clock.monotonic() - startedAt) / 1000;
          const record = { step, facts: readFacts(facts), failure, request, seconds };
          for (const observe of observers) {
            try {
              observe(record);
            } catch (cause) {
              log.error('A login was not audited or noted; please report this.', { cause });
            }
          }
        });
      },
    };
  });
}

function readFacts(facts: Reply['facts'] = {}): LoginFacts {
  const { client, user, issuer, grant, grantId, member } = facts;
  const grantType = GRANT_TYPES_BY_NAME.get(grant);
  return {
    ...(typeof client === 'string' && { client }),
    ...(typeof user === 'string' && { user }),
    ...(grantType && { grant: grantType }),
    ...(typeof issuer === 'string' && { issuer }),
    ...(typeof member === 'string' && { member }),
    ...(typeof grantId === 'string' && { grantId }),
  };
}

/** The audit log and the list of failed logins, if they are enabled. */
export const listLoginObservers = (
  audit: Audit | undefined,
  note: NoteLoginFailure | undefined,
): readonly LoginObserver[] => [
  ...(audit ? [auditLogins(audit)] : []),
  ...(note ? [noteFailures(note)] : []),
];

/** §21.1: one line for each success and failure, none for a login that continues. */
const auditLogins = (audit: Audit): LoginObserver =>
  function auditLogin({ step, facts, failure, request, seconds }) {
    if (failure === undefined && LEADS_ON.has(step)) return;
    const { client, user, issuer, grant: grantType, grantId: grant } = facts;
    const event = step === 'token' && grantType === 'refresh_token' ? 'refresh' : EVENTS[step];
    const outcome =
      failure === undefined
        ? ({ outcome: 'success' } as const)
        : ({ outcome: 'failure', reason: failure.key } as const);
    const action = { event, ip: request.clientIp, trace: getTraceId(request) };
    audit.write(action, { ...outcome, user, issuer, client, grant }, seconds);
  };

const LEADS_ON: ReadonlySet<EndpointName> = new Set(['authorize', 'consent', 'callback']);

const EVENTS: Readonly<Record<EndpointName, AuditEvent>> = {
  register: 'registration',
  authorize: 'login',
  consent: 'login',
  callback: 'login',
  token: 'login',
  revoke: 'revocation',
};

/** §22.4: failed logins are noted for operators. */
const noteFailures = (note: NoteLoginFailure): LoginObserver =>
  function noteFailure({ step, facts: { client, member }, failure, request: { clientIp: ip } }) {
    if (failure === undefined || step === 'revoke') return;
    note({ step, ip, client, error: failure.key, message: failure.message, member });
  };

// One line of the log for each login, with user and client, and never the token.

interface NamedLogin {
  readonly clientId: string;
  /** Name that the client gives itself. */
  readonly clientName: string | undefined;
  /** `sub` of the user; undefined if the access token names none. */
  readonly user: string | undefined;
  /** Issuer of that user; undefined in proxy mode, where the provider's own tokens name it. */
  readonly issuer?: string | undefined;
}

interface LoggedLogin extends NamedLogin {
  /** The client used a refresh token, which happens every few minutes. */
  readonly isRefresh: boolean;
  /** The gateway repeated the last token response of the grant. */
  readonly isLastAnswer?: boolean;
}

const MAX_LOGGED_NAME = 100;

/** User and client, as the log names them wherever a login begins or ends. */
export const describeLogin = ({ clientId, clientName, user, issuer }: NamedLogin) => ({
  client: clientId,
  clientName: clientName?.slice(0, MAX_LOGGED_NAME),
  user,
  issuer,
});

/** Returns the facts about the reply that has the tokens. */
export function logLogin(log: Log, { isRefresh, isLastAnswer, ...login }: LoggedLogin): LoginFacts {
  const { user, issuer } = login;
  const facts = describeLogin(login);
  if (isRefresh) log.debug('Refreshed.', { ...facts, ...(isLastAnswer && { isLastAnswer }) });
  else log.info('Logged in.', facts);
  return { ...(user !== undefined && { user }), ...(issuer !== undefined && { issuer }) };
}

// §22.4: list of the last failed logins on all replicas, for operators.

/** Never contains a token, a code or a secret. */
export interface LoginFailure {
  /** Step that failed. */
  readonly step: LoginStep;
  /** OAuth client ID, as sent. */
  readonly client: string | undefined;
  readonly ip: string;
  /** Key of the error catalogue, or the log's name for a refusal by provider or user. */
  readonly error: string;
  /** The problem, as reported to the caller or in the log. */
  readonly message: string;
  /** The rejected member of the provider's answer, such as a claim of its ID token; undefined for other failures. */
  readonly member?: string | undefined;
}

/** `call`: the client got a token, which the gateway does not accept. */
type LoginStep = 'register' | 'authorize' | 'consent' | 'callback' | 'token' | 'call';

export interface NotedLoginFailure extends LoginFailure {
  /** ISO 8601, UTC. */
  readonly time: string;
}

/** Returns at once: no request waits for the store here. */
type NoteLoginFailure = (failure: LoginFailure) => void;

export type LoginFailures = ReturnType<typeof createLoginFailures>;

const BOUNDS = { max: 100, ttlSeconds: 7 * 86_400 };
/** Per process: an attacker who fails on purpose must not cause endless writes. */
const MAX_PER_MINUTE = 30;
const MINUTE_MS = 60_000;
/** Per address: one stranger must not displace all others in the list. */
const MAX_PER_ADDRESS_AND_HOUR = 20;
const HOUR_MS = 3_600_000;
const MAX_TEXT = 500;

export function createLoginFailures({ config, store, clock, log, notifier }: Runtime) {
  const getSeen = createPeriod(clock, MINUTE_MS, () => new Set<string>());
  const getCounts = createPeriod(clock, HOUR_MS, () => new Map<string, number>());
  const warn = createWarnThrottle(clock, (cause: unknown) =>
    log.warn("A failed login could not be noted for the operators' page.", { cause }),
  );

  function note(failure: LoginFailure) {
    const { step, client, ip, error, message } = failure;
    const seen = getSeen();
    const counts = getCounts();
    const key = JSON.stringify([step, client, ip, error]);
    const address = toAddressKey(ip);
    const count = counts.get(address) ?? 0;
    // Skips failures already recorded in this minute, and those beyond the limits per minute and per address.
    if (seen.has(key) || seen.size >= MAX_PER_MINUTE || count >= MAX_PER_ADDRESS_AND_HOUR) return;
    seen.add(key);
    counts.set(address, count + 1);
    const noted: NotedLoginFailure = {
      time: new Date(clock.now()).toISOString(),
      ...failure,
      client: client === undefined ? undefined : cut(stripUrisIn(client)),
      message: cut(stripUrisIn(message)),
    };
    store.addRecent(LOGIN_FAILURES_KEY, JSON.stringify(noted), BOUNDS).catch(warn);
    notifier.notify({
      kind: 'logins',
      // Nothing that a stranger can choose.
      about: `${step} ${error}`,
      text: `Logins are refused (${step}: ${error}). The operators' page has the details, under Logins:`,
      link: `${config.server.baseUrl}/admin`,
      data: { step, error },
    });
  }

  return {
    note,
    /** Records a login that succeeded, but whose token is not accepted. */
    noteRefusal({ key, message }: GatewayError, { clientIp: ip }: AuthRequest) {
      if (OF_SIGNED_TOKENS.has(key))
        note({ step: 'call', client: undefined, ip, error: key, message });
    },
    /** Most recent first. */
    async list(): Promise<readonly NotedLoginFailure[]> {
      const recent = await store.readRecent(LOGIN_FAILURES_KEY);
      return recent.map((text): unknown => parseObject(text)).filter(isNoted);
    },
  };
}

/** Reasons to refuse a token that its provider did sign: anybody can make up other tokens. */
const OF_SIGNED_TOKENS = new Set(['invalid_audience', 'invalid_issuer', 'missing_claim']);

/** A value that is recreated once its period has ended. */
function createPeriod<Value>(clock: Clock, ms: number, create: () => Value) {
  let value = create();
  let until = Number.NEGATIVE_INFINITY;

  return () => {
    const now = clock.monotonic();
    if (now >= until) {
      value = create();
      until = now + ms;
    }
    return value;
  };
}

/** Checks a stored text of this code; a later version may have added members. */
const isNoted = (value: unknown): value is NotedLoginFailure =>
  isObject(value) && ['time', 'step', 'ip', 'error', 'message'].every((name) => name in value);

const cut = (text: string) => (text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text);
