// The MCP feature as a whole: both eras over one catalogue, behind the endpoints of /mcp.

import { fail, GatewayError } from '../errors/gateway-error.ts';
import { addChallenge, type GetChallenge } from '../http/endpoint/bearer.ts';
import type { Endpoint, JudgedCall, ProtectedCall } from '../http/endpoint/endpoint.ts';
import {
  type GatewayRequest,
  getHeader,
  type Reply,
  type ReplyHeaders,
} from '../http/endpoint/message.ts';
import { JSONRPC, toLogMembers } from '../http/endpoint/render-error.ts';
import { pause } from '../platform/clock.ts';
import type { JsonObject } from '../platform/json.ts';
import { truncateForLog } from '../platform/log.ts';
import { countBytes } from '../platform/pieces.ts';
import { stripUri } from '../platform/secret-texts.ts';
import { EVENT_STREAM_HEADERS } from '../platform/text.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { readTraceId } from '../telemetry/tracing/tracing.ts';
import {
  Call,
  type Callers,
  type CallRecord,
  createCallRecord,
  type EraHandler,
  SESSION_HEADER,
} from './calls/call.ts';
import { type CallControl, createCalls } from './calls/run-call.ts';
import type { Catalogs, ServedCatalog } from './catalog/served-catalog.ts';
import { defineFeature } from './feature.ts';
import { parseMessage, type RequestId } from './protocol/json-rpc.ts';
import { checkVersionHeader, type Era } from './protocol/revisions.ts';
import { createSessionEraHandler } from './session/session-era.ts';
import { openSessionServices, type SessionServices } from './session/session-services.ts';
import { createStatelessEraHandler } from './stateless/stateless-era.ts';
import { createNotificationStreams } from './streaming/notification-streams.ts';
import {
  type Answer,
  acceptsEventStream,
  type McpResponse,
  renderBody,
  toErrorAnswer,
} from './streaming/response-stream.ts';
import { createTasks } from './tasks/tasks.ts';

interface CallNeeds
  extends CallControl,
    Catalogs,
    Pick<Callers, 'findClientId' | 'getProviderToken' | 'describeUser'> {
  readonly auth: { readonly getChallenge: GetChallenge | undefined };
  readonly ownTokens: Pick<Callers, 'endedGrants'> | undefined;
  readonly operated:
    | {
        readonly sealPerson: Callers['sealPerson'];
        readonly recentCallers: { note: Callers['noteUser'] };
        readonly calls: { add: Callers['listCall'] } | undefined;
      }
    | undefined;
}

export const callFeature = defineFeature({
  name: 'calls',
  open(runtime, needs: CallNeeds) {
    const { operated } = needs;
    return createMcp(runtime, needs, needs, {
      ...needs,
      getChallenge: needs.auth.getChallenge,
      sealPerson: operated?.sealPerson,
      noteUser: operated?.recentCallers.note,
      listCall: operated?.calls?.add,
      endedGrants: needs.ownTokens?.endedGrants,
    });
  },
});

const REQUEST_HEADERS = [
  'mcp-session-id',
  'MCP-Protocol-Version',
  'Mcp-Method',
  'Mcp-Name',
  'Last-Event-ID',
];
const RESPONSE_HEADERS = ['mcp-session-id', 'X-Session-Expires-At'];

export function createMcp(
  runtime: Runtime,
  catalogs: Catalogs,
  control: CallControl,
  callers: Callers,
) {
  const notificationStreams = createNotificationStreams(runtime, callers.endedGrants);
  const calls = createCalls(runtime, control, callers);
  const tasks = createTasks(runtime, control);
  const services = openSessionServices(runtime, calls, notificationStreams, callers.sealPerson);
  const { sessions, sessionStreams, keptStreams, resumptions, questions } = services;
  const eras = {
    session: createSessionEraHandler(services, catalogs.all.endSession),
    stateless: createStatelessEraHandler(runtime, calls, tasks, notificationStreams),
  };

  return {
    gives: {
      /** Headers of MCP for CORS: request headers, and exposed response headers. */
      corsHeaders: {
        request: [...REQUEST_HEADERS, ...catalogs.all.mirrorHeaders],
        // Servers may mark arguments for headers at any time.
        requestPrefix: catalogs.all.offers.listChanges === true ? 'mcp-param-' : undefined,
        response: RESPONSE_HEADERS,
      },
      /** Ends a session of any user, and its stream. False if there is none. Sessions at servers expire by themselves. */
      async endSession(id: string): Promise<boolean> {
        const hasEnded = await sessions.endAnybodys(id);
        if (hasEnded) {
          keptStreams.endSession(id);
          await sessionStreams?.end(id);
        }
        return hasEnded;
      },
      countSessions: sessions.countActive,
    },
    endpoints: createMcpEndpoints(catalogs, eras, services, callers.getChallenge),
    gauges: { activeSessions: sessions.countActive },
    /** Ends waits: open streams, whose clients reconnect to other replicas, and server-initiated requests. */
    stopWaiting(): void {
      keptStreams.startStopping();
      resumptions.close();
      notificationStreams.disconnect();
      questions.close();
    },
    /** Drains calls with resumable streams (§15.1), and running tasks, which are ended after `graceMs`. */
    async drain(graceMs: number): Promise<void> {
      const isLate = pause(runtime.clock, graceMs);
      await Promise.all([Promise.race([keptStreams.drain(), isLate]), tasks.close(graceMs)]);
    },
    /** Ends those calls, and writes their events to the store. */
    async close(): Promise<void> {
      try {
        notificationStreams.close();
        await keptStreams.stop(STOPPED);
      } finally {
        services.close();
      }
    },
  };
}

/** The answer to calls that outlast the shutdown. */
const STOPPED = new GatewayError('stream_lost', {
  details:
    'The replica that ran this call was stopped before it ended. The call may have run: look before you call again.',
});

// §4.1, §4.4, §4.5: the endpoints of /mcp: HTTP requests to calls, responses to HTTP replies.

function createMcpEndpoints(
  catalogs: Catalogs,
  eras: Readonly<Record<Era, EraHandler>>,
  services: SessionServices,
  getChallenge: Callers['getChallenge'],
): readonly Endpoint[] {
  const { calls, sessions, sessionStreams, keptStreams, resumptions, findStreamOwner } = services;
  const { observer } = calls;
  const hasStreams = sessionStreams !== undefined;
  /** A server or view may be removed after the path was matched. */
  const findCatalog = ({ path }: GatewayRequest): ServedCatalog =>
    path === '/mcp'
      ? catalogs.all
      : (catalogs.findNamed(path.slice('/mcp/'.length)) ?? fail('not_found'));
  const places: readonly Pick<Endpoint, 'path' | 'hasParameter'>[] = [
    { path: '/mcp' },
    { path: '/mcp/:server', hasParameter: (name) => catalogs.findNamed(name) !== undefined },
  ];
  return places.flatMap((place): readonly Endpoint[] => {
    const guarded = { ...place, errors: JSONRPC, kind: 'protected', limit: 'mcp' } as const;
    return [
      { ...guarded, method: 'POST', body: 'json', judge: prepareCall },
      { ...guarded, method: 'DELETE', judge: judgeDelete },
      {
        ...guarded,
        method: 'GET',
        hasFrontPage: true,
        ...(!hasStreams && { isUnlisted: true, checkOffered: refuseNewStream }),
        judge: judgeGet,
      },
    ];
  });

  /** Reads the message, and makes the call that runs after it was admitted. */
  function prepareCall(protectedCall: ProtectedCall): JudgedCall {
    const { request, user, body } = protectedCall;
    const catalog = findCatalog(request);
    const message = parseMessage(body.value);
    const record = createCallRecord(message, protectedCall, catalog, hasStreams);
    observer.receive(record);
    const call = new Call(record, catalog, protectedCall, message);
    return {
      access: eras[record.era].toSessionAccess(request, user),
      run(session) {
        call.session = session;
        return answer(call);
      },
      renderFailure: (error) =>
        toReply({ kind: 'json', answer: { error } }, record.id ?? null, {}, createDescribe(record)),
    };
  }

  async function answer(call: Call): Promise<Reply> {
    const { record, request } = call;
    observer.admit(record);
    // Of the record as sent: a nested call (§25.3) replaces its subject.
    const describe = createDescribe(record);
    let response: McpResponse;
    try {
      response = await eras[record.era].handle(call);
    } catch (thrown) {
      response = { kind: 'json', answer: toErrorAnswer(thrown) };
    }
    if (response.kind === 'json' && 'error' in response.answer) {
      const error = addChallenge(response.answer.error, getChallenge?.(request.path));
      response = { kind: 'json', answer: { error } };
    }
    const reply = toReply(response, record.id ?? null, call.sessionInfo, describe);
    if (record.listed !== undefined) record.listed.bytes = countBody(reply);
    return reply;
  }

  /** Reads the session without sliding it, so that an expired one is counted as such. */
  function judgeDelete({ request, user }: ProtectedCall): JudgedCall {
    const catalog = findCatalog(request);
    const id = getHeader(request, SESSION_HEADER) ?? fail('missing_session_id');
    return {
      access: sessions.toAccess(id, user, 'read'),
      async run(session) {
        const record =
          sessions.selectOwn({ user, session, catalog }) ??
          (await sessions.failNotFound(id, session, NOT_ENDED));
        if (!(await sessions.end(id, user))) fail(NOT_ENDED);
        catalog.endSession(findStreamOwner({ user, catalog }, record).caller);
        keptStreams.endSession(id);
        await sessionStreams?.end(id);
        return { status: 204 };
      },
    };
  }

  /** Opens the stream of a session, or resumes a stream (§15.1). */
  function judgeGet({ request, user }: ProtectedCall): JudgedCall {
    const catalog = findCatalog(request);
    const lastEventId = getHeader(request, 'last-event-id');
    const id = getHeader(request, SESSION_HEADER) ?? fail('missing_session_id');
    checkVersionHeader(request);
    if (!acceptsEventStream(request)) fail('not_acceptable');
    return {
      access: sessions.toAccess(id, user, 'slide'),
      async run(session) {
        const record =
          sessions.selectOwn({ user, session, catalog }) ??
          (await sessions.failNotFound(id, session, 'session_not_found'));
        const expiresAt = sessions.getExpiry(record);
        // HEAD returns the headers of GET, and must not end the session's open stream.
        if (request.method === 'HEAD')
          return {
            status: 200,
            headers: addSessionHeaders({ ...EVENT_STREAM_HEADERS }, { expiresAt }),
          };
        const resumed =
          lastEventId === undefined ? NEW_STREAM : resumptions.resume(record, lastEventId);
        if (resumed === undefined) return NOTHING_LEFT;
        if (resumed.kind === 'stream') return toReply(resumed, null, { expiresAt });
        // The stream began while MCP_STREAMS was on.
        if (sessionStreams === undefined) return NOTHING_LEFT;
        const owner = findStreamOwner({ user, catalog }, record);
        const earlier = resumed.kind === 'earlier' ? resumed : undefined;
        return toReply(await sessionStreams.open(owner, earlier), null, { expiresAt });
      },
    };
  }

  /** GET without MCP_STREAMS: streams can only be resumed. Clients probe here for the login. */
  function refuseNewStream(request: GatewayRequest) {
    if (getHeader(request, 'last-event-id') !== undefined) return;
    if (getChallenge !== undefined && getHeader(request, 'authorization') === undefined)
      fail('missing_token', { headers: getChallenge(request.path) });
    fail('method_not_allowed', {
      details:
        'This service offers no event stream (MCP_STREAMS is off): each POST is answered by its own response. With Last-Event-ID a client comes back to one of those.',
      headers: { Allow: 'POST, DELETE' },
    });
  }
}

/** Undefined for a stream. */
const countBody = ({ body, pieces }: Reply): number | undefined =>
  body === undefined ? pieces && countBytes(pieces) : Buffer.byteLength(body);

const NOT_ENDED = 'session_to_end_not_found';

const NEW_STREAM = { kind: 'new' } as const;

/** Clients of event streams do not reconnect after it (WHATWG HTML §9.2.3). */
const NOTHING_LEFT: Reply = { status: 204 };

/** The one place where a response becomes HTTP. */
function toReply(
  response: McpResponse,
  id: RequestId | null,
  session: Call['sessionInfo'],
  describe: Reply['describe'] = describeNothing,
): Reply {
  switch (response.kind) {
    case 'accepted':
      return { status: 202, headers: addSessionHeaders({}, session), describe };
    case 'stream': {
      const { events, answer } = response;
      return {
        status: 200,
        headers: addSessionHeaders({ ...EVENT_STREAM_HEADERS }, session),
        stream: events,
        // Absent for a stream without an answer: it would be kept for as long as the stream is open.
        ...(answer && { outcome: () => describeAnswer(answer()) }),
        describe,
      };
    }
    case 'json': {
      const { body, pieces, error } = renderBody(response.answer, id);
      const type = { 'Content-Type': 'application/json' };
      if (error === undefined)
        return { status: 200, headers: addSessionHeaders(type, session), body, pieces, describe };
      const { headers, facts } = error.failure;
      return {
        status: error.row.status,
        headers: addSessionHeaders({ ...type, ...headers }, session),
        body,
        error,
        describe,
        ...(facts && { facts }),
      };
    }
  }
}

/** Adds to the given headers, without copying them. */
function addSessionHeaders(
  headers: Record<string, string>,
  { sessionId, expiresAt }: Call['sessionInfo'],
): ReplyHeaders {
  if (sessionId !== undefined) headers[SESSION_HEADER] = sessionId;
  if (expiresAt !== undefined) headers['X-Session-Expires-At'] = expiresAt;
  return headers;
}

function describeAnswer(answer: Answer | undefined): Pick<Reply, 'error' | 'facts'> {
  const error = answer && ('error' in answer ? answer.error : answer.failure);
  return error === undefined ? {} : toLogMembers(error);
}

const describeNothing = (): JsonObject => ({});

/** Describes the message for the log: `tools/call` of `service_ping`. Keeps nothing else of the record. */
function createDescribe({ era, methodName, subject, trace }: CallRecord): () => JsonObject {
  return function describe() {
    if (methodName === undefined) return { era };
    const isUri = methodName.startsWith('resources/');
    const traceId = readTraceId(trace);
    return {
      era,
      rpc: truncateForLog(methodName),
      ...(subject !== undefined && { of: truncateForLog(isUri ? stripUri(subject) : subject) }),
      ...(traceId !== undefined && { trace: traceId }),
    };
  };
}
