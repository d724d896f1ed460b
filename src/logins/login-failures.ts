// §22.4: the last logins that failed, on whatever replica, for operators.

import { type GatewayError, toGatewayError } from '../errors/gateway-error.ts';
import type { AuthRequest } from '../http/endpoint/bearer.ts';
import { type Endpoint, type PublicEndpoint, wrapRun } from '../http/endpoint/endpoint.ts';
import type { GatewayRequest, PendingReply, Reply } from '../http/endpoint/message.ts';
import { toAddressKey } from '../platform/address.ts';
import type { Clock } from '../platform/clock.ts';
import { isObject, parseObject } from '../platform/json.ts';
import type { ClockAndLog } from '../platform/log.ts';
import { stripUrisIn } from '../platform/secret-texts.ts';
import { createWarnThrottle } from '../platform/throttle.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { LOGIN_FAILURES_KEY } from '../store/keys.ts';
import type { Audit, AuditEvent } from '../telemetry/audit/audit.ts';
import { getTraceId } from '../telemetry/tracing/tracing.ts';
import {
  addFactsOfRequest,
  type LoginFacts,
  readAskedFacts,
  readFacts,
} from './request/login-facts.ts';

/** Never a token, a code or a secret. */
export interface LoginFailure {
  /** Where the login ended. */
  readonly step: LoginStep;
  /** OAuth client ID, as it was sent. */
  readonly client: string | undefined;
  readonly ip: string;
  /** A key of the error catalogue, or what the log calls a refusal by provider or user. */
  readonly error: string;
  /** What went wrong, as the caller or the log was told. */
  readonly message: string;
}

/** `call`: a token was handed out, but the gateway does not accept it. */
export type LoginStep = 'register' | 'authorize' | 'consent' | 'callback' | 'token' | 'call';

export interface NotedLoginFailure extends LoginFailure {
  /** ISO 8601, UTC. */
  readonly time: string;
}

/** At once: what it writes, nobody waits for. */
export type NoteLoginFailure = (failure: LoginFailure) => void;

export type LoginFailures = ReturnType<typeof createLoginFailures>;

const BOUNDS = { max: 100, ttlSeconds: 7 * 86_400 };
/** Of each process: whoever fails on purpose must not write without end. */
const MAX_PER_MINUTE = 30;
const MINUTE_MS = 60_000;
/** Of one address: one stranger must not push all others out of the list. */
const MAX_PER_ADDRESS_AND_HOUR = 20;
const HOUR_MS = 3_600_000;
const MAX_TEXT = 500;

export function createLoginFailures({ store, clock, log }: Runtime) {
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
    // Not what was seen in this minute, and nothing that is too much of it, or of one address.
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
  }

  return {
    note,
    /** Notes a login that worked, but whose token is of no use here. */
    noteRefusal({ key, message }: GatewayError, { clientIp: ip }: AuthRequest) {
      if (OF_SIGNED_TOKENS.has(key))
        note({ step: 'call', client: undefined, ip, error: key, message });
    },
    /** The last first. */
    async list(): Promise<readonly NotedLoginFailure[]> {
      const recent = await store.readRecent(LOGIN_FAILURES_KEY);
      return recent.map((text): unknown => parseObject(text)).filter(isNoted);
    },
  };
}

/** Reasons to refuse a token that its provider did sign: other tokens anybody can make up. */
const OF_SIGNED_TOKENS = new Set(['invalid_audience', 'invalid_issuer', 'missing_claim']);

/** A value that begins anew when the period in which it was made is over. */
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

/** What this code wrote; a later version may have added members. */
const isNoted = (value: unknown): value is NotedLoginFailure =>
  isObject(value) && ['time', 'step', 'ip', 'error', 'message'].every((name) => name in value);

const cut = (text: string) => (text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text);

// §21.1, §22.4: who is told of what happens at the endpoints of OAuth: the audit log, and the list of failed logins.

/** The outcome of one request. */
interface LoginRecord {
  readonly step: EndpointName;
  readonly facts: LoginFacts;
  /** Undefined where nothing failed. */
  readonly failure: LoginProblem | undefined;
  readonly request: GatewayRequest;
  readonly seconds: number;
}

/** `key` is one of the error catalogue, or what the log calls a refusal by provider or user. */
interface LoginProblem {
  readonly key: string;
  readonly message: string;
}

type EndpointName = Exclude<LoginStep, 'call'> | 'revoke';

/** An error that one throws is logged and reaches nobody. */
type LoginObserver = (record: LoginRecord) => void;

/** The request says something of itself, or names nobody; the handler knows more. */
const OBSERVED = new Map<string, readonly [step: EndpointName, asks?: 'query' | 'body']>([
  ['/oauth/register', ['register']],
  ['/oauth/authorize', ['authorize', 'query']],
  ['/oauth/consent', ['consent']],
  ['/oauth/callback', ['callback']],
  ['/oauth/token', ['token', 'body']],
  ['/oauth/revoke', ['revoke', 'body']],
]);

/** The same endpoints, whose replies and errors say for the log what was asked. What a limit refuses is not seen. */
export function observeLogins(
  { clock, log }: ClockAndLog,
  endpoints: readonly Endpoint[],
  observers: readonly LoginObserver[],
): readonly Endpoint[] {
  return endpoints.map((endpoint) => {
    const [step, asks] = OBSERVED.get(endpoint.path) ?? [];
    return step === undefined || endpoint.kind !== 'public'
      ? endpoint
      : { ...endpoint, judge: createJudge(endpoint, step, asks) };
  });

  function createJudge(
    endpoint: PublicEndpoint,
    step: EndpointName,
    asks: 'query' | 'body' | undefined,
  ): PublicEndpoint['judge'] {
    return async function judge(request, body) {
      const startedAt = clock.monotonic();

      function tell(facts: Reply['facts'], failure: LoginProblem | undefined) {
        const seconds = (clock.monotonic() - startedAt) / 1000;
        const record = { step, facts: readFacts(facts), failure, request, seconds };
        for (const tellObserver of observers) {
          try {
            tellObserver(record);
          } catch (cause) {
            log.error('A login was not audited or noted; please report this.', { cause });
          }
        }
      }

      function tellAndRethrow(thrown: unknown): never {
        const { key, message, failure } = toGatewayError(thrown);
        tell(failure.facts, { key, message });
        throw thrown;
      }

      async function run(pending: PendingReply) {
        const reply = await Promise.resolve().then(pending).catch(tellAndRethrow);
        // A reply may tell of a failure though nothing was thrown.
        tell(reply.facts, reply.error ?? (reply.status >= 400 ? UNNAMED : undefined));
        return reply;
      }

      const asked = asks ? readAskedFacts(asks === 'query' ? request.query : body) : {};
      const judged = await addFactsOfRequest(asked, () => endpoint.judge(request, body)).catch(
        tellAndRethrow,
      );
      return wrapRun(judged, (pending) => () => run(pending));
    };
  }
}

/** A refusal of the provider that says nothing. */
const UNNAMED = { key: 'refused_by_provider', message: 'The provider refused, without a reason.' };

/** The audit log, and the list of failed logins: either may be missing. */
export const listLoginObservers = (
  audit: Audit | undefined,
  note: NoteLoginFailure | undefined,
): readonly LoginObserver[] => [
  ...(audit ? [auditLogins(audit)] : []),
  ...(note ? [noteFailures(note)] : []),
];

/** §21.1: a line for what succeeded or failed, and none for a login that goes on. */
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

/** §22.4: logins that fail are noted for operators. */
const noteFailures = (note: NoteLoginFailure): LoginObserver =>
  function noteFailure({ step, facts: { client }, failure, request: { clientIp: ip } }) {
    if (failure === undefined || step === 'revoke') return;
    note({ step, ip, client, error: failure.key, message: failure.message });
  };
