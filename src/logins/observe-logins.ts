// §21.1, §22.4: who is told of what happens at the endpoints of OAuth: the audit log, and the list of failed logins.

import { toGatewayError } from '../errors/gateway-error.ts';
import { type Endpoint, type PublicEndpoint, wrapRun } from '../http/endpoint/endpoint.ts';
import type { GatewayRequest, PendingReply, Reply, RequestBody } from '../http/endpoint/message.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { Audit, AuditEvent } from '../telemetry/audit/audit.ts';
import { getTraceId } from '../telemetry/tracing/tracing.ts';

import type { LoginStep, NoteLoginFailure } from './login-failures.ts';
import {
  addFactsOfRequest,
  type LoginFacts,
  readAskedFacts,
  readFacts,
} from './request/login-facts.ts';

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

type ReadAsked = (request: GatewayRequest, body: RequestBody) => LoginFacts;

const readQuery: ReadAsked = ({ query }) => readAskedFacts(query);
const readBody: ReadAsked = (_request, body) => readAskedFacts(body);
/** These requests name nobody; the handler knows more. */
const readNothing: ReadAsked = () => ({});

const OBSERVED = new Map<string, readonly [step: EndpointName, readAsked: ReadAsked]>([
  ['/oauth/register', ['register', readNothing]],
  ['/oauth/authorize', ['authorize', readQuery]],
  ['/oauth/consent', ['consent', readNothing]],
  ['/oauth/callback', ['callback', readNothing]],
  ['/oauth/token', ['token', readBody]],
  ['/oauth/revoke', ['revoke', readBody]],
]);

/** The same endpoints, whose replies and errors say for the log what was asked. What a limit refuses is not seen. */
export function observeLogins(
  { clock, log }: Pick<Runtime, 'clock' | 'log'>,
  endpoints: readonly Endpoint[],
  observers: readonly LoginObserver[],
): readonly Endpoint[] {
  return endpoints.map((endpoint) => {
    const [step, readAsked] = OBSERVED.get(endpoint.path) ?? [];
    return step === undefined || readAsked === undefined || endpoint.kind !== 'public'
      ? endpoint
      : { ...endpoint, judge: createJudge(endpoint, step, readAsked) };
  });

  function createJudge(
    endpoint: PublicEndpoint,
    step: EndpointName,
    readAsked: ReadAsked,
  ): PublicEndpoint['judge'] {
    return async function judge(request, body) {
      const startedAt = clock.monotonic();

      function tell(facts: Reply['facts'], failure: LoginProblem | undefined): void {
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

      async function run(pending: PendingReply): Promise<Reply> {
        const reply = await Promise.resolve().then(pending).catch(tellAndRethrow);
        tell(reply.facts, findProblem(reply));
        return reply;
      }

      const judged = await addFactsOfRequest(readAsked(request, body), () =>
        endpoint.judge(request, body),
      ).catch(tellAndRethrow);
      return wrapRun(judged, (pending) => () => run(pending));
    };
  }
}

/** A reply may tell of a failure though nothing was thrown. */
const findProblem = ({ error, status }: Reply): LoginProblem | undefined =>
  error ?? (status >= 400 ? UNNAMED : undefined);

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
