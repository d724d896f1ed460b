// §21.1: logins, registrations and revocations in the audit log: what was asked, and what came of it.

import type { TokenInspection } from '../auth/token-verifier.ts';
import type { Endpoint, PublicEndpoint } from '../endpoint/endpoint.ts';
import type { GatewayRequest, Reply, RequestBody } from '../endpoint/message.ts';
import { toGatewayError } from '../errors/gateway-error.ts';
import type { Clock } from '../platform/clock.ts';
import { isObject, type JsonObject, parseObject } from '../platform/json.ts';
import {
  type Audit,
  type AuditedAction,
  type AuditedEnd,
  judgeWork,
} from '../telemetry/audit/audit.ts';
import { isFailure, readClient, watchEndpoint } from './watch-endpoint.ts';

export interface AuditEndpointsDeps {
  readonly audit: Audit;
  readonly inspectToken: (token: string) => TokenInspection;
  readonly getTraceId: (request: GatewayRequest) => string | undefined;
  readonly clock: Clock;
}

/** What an endpoint's requests are in the audit log. */
interface AuditedEndpoint {
  readonly nameEvent: (body: RequestBody) => AuditedAction['event'];
  /** Undefined where a success ends nothing yet: the login goes on. */
  readonly readSuccess?: (answer: JsonObject, deps: AuditEndpointsDeps) => Learned;
}

type Learned = Pick<AuditedEnd, 'user' | 'client'>;

const LOGIN_STEP: AuditedEndpoint = { nameEvent: () => 'login' };

const AUDITED: Readonly<Record<string, AuditedEndpoint>> = {
  '/oauth/authorize': LOGIN_STEP,
  '/oauth/consent': LOGIN_STEP,
  '/oauth/callback': LOGIN_STEP,
  '/oauth/token': {
    nameEvent: (body) => (readGrantType(body) === 'refresh_token' ? 'refresh' : 'login'),
    // It came from the provider itself, by TLS.
    readSuccess: ({ access_token: token }, { inspectToken }) =>
      typeof token === 'string' ? { user: inspectToken(token).sub } : {},
  },
  '/oauth/register': {
    nameEvent: () => 'registration',
    readSuccess: ({ client_id: client }) => (typeof client === 'string' ? { client } : {}),
  },
  '/oauth/revoke': { nameEvent: () => 'revocation', readSuccess: () => ({}) },
};

/** The same endpoints; what a limit refuses is no line. */
export function auditEndpoints(
  endpoints: readonly Endpoint[],
  deps: AuditEndpointsDeps,
): readonly Endpoint[] {
  return endpoints.map((endpoint) => {
    const audited = AUDITED[endpoint.path];
    return audited === undefined || endpoint.kind !== 'public'
      ? endpoint
      : auditEndpoint(endpoint, audited, deps);
  });
}

function auditEndpoint(
  endpoint: PublicEndpoint,
  { nameEvent, readSuccess }: AuditedEndpoint,
  deps: AuditEndpointsDeps,
): PublicEndpoint {
  const { audit, getTraceId, clock } = deps;

  return watchEndpoint(endpoint, (request, body) => {
    const startedAt = clock.monotonic();
    const action: AuditedAction = {
      event: nameEvent(body),
      ip: request.clientIp,
      trace: getTraceId(request),
    };
    const write = (end: AuditedEnd) =>
      audit.write(action, end, (clock.monotonic() - startedAt) / 1000);

    return (end) => {
      if ('thrown' in end) {
        write({ ...judgeWork(end), client: readClient(toGatewayError(end.thrown).failure) });
        return;
      }
      const { result: reply } = end;
      if (isFailure(reply)) {
        write({ outcome: 'failure', reason: reply.error?.key, client: readClient(reply) });
      } else if (readSuccess !== undefined) {
        const learned = readSuccess(readBody(reply), deps);
        write({ outcome: 'success', client: readClient(reply), ...learned });
      }
    };
  });
}

const readBody = ({ body }: Reply): JsonObject =>
  body === undefined ? {} : (parseObject(Buffer.from(body)) ?? {});

/** Of a body that is not judged yet. */
function readGrantType(body: RequestBody): unknown {
  if (body.type === 'form') return new URLSearchParams(body.text).get('grant_type');
  return isObject(body.value) ? body.value.grant_type : undefined;
}
