// Observers of calls (metrics, audit log, traces), and the count of running calls.

import { fail, GatewayError } from '../../errors/gateway-error.ts';
import type { ListedCall } from '../../http/endpoint/admin-calls.ts';
import { getHeader, type UserContext } from '../../http/endpoint/message.ts';
import { LinkedList } from '../../platform/bounded-map.ts';
import type { Clock } from '../../platform/clock.ts';
import { type Log, truncateForLog } from '../../platform/log.ts';
import { stripUri } from '../../platform/secret-texts.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { nameOwner } from '../../store/keys.ts';
import type { Audit, AuditedAction, AuditedEnd } from '../../telemetry/audit/audit.ts';
import { type Attributes, readTraceContext, readTraceId } from '../../telemetry/tracing/tracing.ts';
import { describeItem, type MethodItem } from '../protocol/methods.ts';
import type { Call, Callers, CallRecord, Outcome } from './call.ts';

/** An observer. Errors are logged and affect nothing else, except those of `start`. */
export interface CallObserver {
  /** A valid message was received; nothing has happened yet. */
  receive?(record: CallRecord): void;
  /** The rate limits admitted it: it will be answered. */
  admit?(record: CallRecord): void;
  /** The call is about to run, or was refused before. A rejection prevents that it runs. */
  start?(record: CallRecord): Promise<void> | undefined;
  /** It has ended with `outcome`. */
  end?(record: CallRecord): void;
}

/** All observers as one, in their order. */
export function joinObservers(
  observers: readonly CallObserver[],
  log: Log,
): Required<CallObserver> {
  const tellAll =
    (event: 'receive' | 'admit' | 'end') =>
    (record: CallRecord): void => {
      for (const observer of observers) {
        try {
          observer[event]?.(record);
        } catch (cause) {
          log.error('A call was not counted, traced or audited; please report this.', { cause });
        }
      }
    };
  return {
    receive: tellAll('receive'),
    admit: tellAll('admit'),
    start(record) {
      // Nearly always nothing has to be awaited.
      let waiting: Promise<void> | undefined;
      for (const { start } of observers) {
        const starting = start?.(record);
        if (starting === undefined) continue;
        // Concurrently: a rejection while another is awaited would be unhandled.
        waiting =
          waiting === undefined ? starting : Promise.all([waiting, starting]).then(() => {});
      }
      return waiting;
    },
    end: tellAll('end'),
  };
}

/** In this order. */
export function observeCalls(
  runtime: Runtime,
  { describeUser, noteUser, listCall }: Callers,
): Required<CallObserver> {
  const { config, clock, log, audit, tracing } = runtime;
  const described = config.audit.claims ? describeUser : undefined;
  /** For operators. */
  const noteUsers: CallObserver | undefined = noteUser && {
    admit({ id, user }) {
      if (id !== undefined && user !== undefined) noteUser(user);
    },
  };
  const observers = [
    tracing && traceCalls,
    countCalls(runtime),
    audit && auditCalls(audit, clock, described),
    noteUsers,
    listCall && listCalls(listCall, clock),
  ];
  return joinObservers(
    observers.filter((observer) => observer !== undefined),
    log,
  );
}

// §4.11: metrics of calls.

const countCalls = ({ metrics, clock }: Runtime): CallObserver => ({
  admit({ id, method, era, view = '' }) {
    if (id !== undefined) metrics.recordMcpRequest(method?.name ?? 'other', era, view);
  },
  /**
   * Only known tools, under the names that `/mcp` lists, since the series are named after them. Refused calls (invalid input, a
   * request to the client) are not counted.
   */
  end({ target, method, era, startedAt, outcome }) {
    if (method?.item?.kind !== 'tool' || target === undefined || outcome === undefined) return;
    const { name } = target.item;
    const seconds = (clock.monotonic() - startedAt) / 1000;
    if (outcome.kind === 'success') metrics.recordToolCall(name, 'success', era, seconds);
    if (outcome.kind === 'tool_error') metrics.recordToolCall(name, 'error', era, seconds);
    if (outcome.kind === 'failure' && outcome.error.key === 'tool_failed')
      metrics.recordToolCall(name, 'exception', era, seconds);
  },
});

// §21.1: calls to tools, prompts and resources in the audit log, including denied ones. Never an argument.

const auditCalls = (
  audit: Audit,
  clock: Clock,
  describeUser: Callers['describeUser'],
): CallObserver => ({
  start(record) {
    const item = record.method?.item;
    if (item === undefined || !audit.isRequired) return undefined;
    // The server of a URI may depend on earlier links: the line for the end of the call names it.
    const server = item.kind === 'resource' ? record.pathServer : record.server;
    return audit.writeStart({ ...describeCall(item, record), server });
  },
  end(record) {
    const { method, outcome, startedAt } = record;
    if (method?.item === undefined || outcome === undefined) return;
    // A call whose first line could not be written has no last one.
    if (outcome.kind === 'failure' && outcome.error.key === 'audit_unavailable') return;
    const seconds = (clock.monotonic() - startedAt) / 1000;
    const who = record.user && describeUser?.(record.user);
    audit.write({ ...describeCall(method.item, record), who }, toAuditedEnd(outcome), seconds);
  },
});

// §22.8: the same calls, for operators.

const listCalls = (add: (call: ListedCall) => void, clock: Clock): CallObserver => ({
  end(record) {
    const { user, clientId, server, subject, method, outcome, startedAt } = record;
    const kind = method?.item?.kind;
    if (kind === undefined || outcome === undefined) return;
    const { outcome: ended, reason } = toAuditedEnd(outcome);
    const call: ListedCall = {
      at: clock.now(),
      user: user?.sub,
      issuer: user?.issuer,
      client: clientId,
      server,
      kind,
      name: subject && truncateForLog(kind === 'resource' ? stripUri(subject) : subject),
      outcome: ended,
      reason,
      ms: Math.round(clock.monotonic() - startedAt),
      bytes: undefined,
    };
    record.listed = call;
    add(call);
  },
});

function describeCall(
  { auditEvent, kind }: MethodItem,
  { user, clientId, request, view, pathServer, server, subject, trace }: CallRecord,
): AuditedAction {
  return {
    event: auditEvent,
    user: user?.sub,
    issuer: user?.issuer,
    client: clientId,
    grant: user?.grant?.id,
    ip: request.clientIp,
    view: view ?? pathServer,
    server,
    [kind]: subject,
    trace: readTraceId(trace) ?? readTraceId(readTraceContext(request.headers)),
  };
}

function toAuditedEnd(outcome: Outcome): AuditedEnd {
  switch (outcome.kind) {
    case 'success':
    case 'asked':
      return { outcome: outcome.kind };
    case 'tool_error':
      return { outcome: 'failure', reason: 'tool_error' };
    case 'denied':
      return { outcome: 'denied', reason: outcome.by };
    case 'failure':
      return { outcome: 'failure', reason: outcome.error.key };
  }
}

// §21.2: attributes of the span of a request to /mcp, by OpenTelemetry's conventions for MCP. Never an argument.

const traceCalls: CallObserver = {
  receive(record) {
    const { trace } = record.request;
    if (trace === undefined) return;
    trace.offerParent(record.trace);
    // Requests to servers are children of this span.
    record.trace = trace.getContext();
    trace.getSpan()?.setAttributes(describeMessage(record));
  },
  admit({ request: { trace }, method }) {
    // Only known methods name a span: callers could create any number of names.
    if (method !== undefined) trace?.setName(method.name);
  },
  end({ request: { trace }, method, subject, outcome }) {
    const span = trace?.getSpan();
    if (trace === undefined || span === undefined || outcome === undefined) return;
    if (outcome.kind === 'tool_error') span.fail('tool_error');
    if ('error' in outcome) {
      const { failure, row } = outcome.error;
      const code = String(failure.jsonRpc?.code ?? row.jsonrpc?.code ?? '_OTHER');
      span.setAttributes({ 'rpc.response.status_code': code });
      span.fail(code);
      // An answer means that the item exists; URIs are too many for names.
    } else if (method?.item?.param === 'name' && subject !== undefined) {
      trace.setName(`${method.name} ${truncateForLog(subject)}`);
    }
  },
};

function describeMessage({
  methodName,
  method,
  subject,
  id,
  request,
  view,
}: CallRecord): Attributes {
  if (methodName === undefined) return {};
  const item = method?.item;
  const version = getHeader(request, 'mcp-protocol-version');
  return {
    'mcp.method.name': truncateForLog(methodName),
    'mcp.protocol.version': version && truncateForLog(version),
    'jsonrpc.request.id': id === undefined ? undefined : truncateForLog(String(id)),
    'postern.view': view,
    'network.transport': 'tcp',
    'network.protocol.name': 'http',
    ...describeItem(item, subject),
    ...(item?.kind === 'tool' && { 'gen_ai.operation.name': 'execute_tool' }),
  };
}

// §12: counts running calls, of each user and in all; §5.11: ends the calls of an ended login.

/** Milliseconds after which a call counts: rate limits bound short ones. */
const LONG_MS = 1000;
const MAX_IN_ALL = 4096;

type RunningCalls = LinkedList<{ readonly startedAt: number; readonly call: RunningCall }>;

export interface RunningCall extends Pick<Call, 'user' | 'holdBody' | 'abort'> {
  readonly stream: Pick<Call['stream'], 'begin'>;
}

/** §15: interval of checks for long calls, whose answers become streams, in milliseconds. */
const LOOK_FOR_LONG_MS = 250;

export function createCountCall(
  { config, clock }: Pick<Runtime, 'config' | 'clock'>,
  endedGrants?: Callers['endedGrants'],
) {
  // 0 means no bound, and no streams for long calls.
  const { maxCallsPerUser, streamAfterMs } = config.mcp;
  // §15.1: in a session of 2025-11-25 a stream begins earlier, so that its client has an event id.
  const beginAfterMs = Math.min(LONG_MS, streamAfterMs);
  const all: RunningCalls = new LinkedList();
  let isLooking = false;
  const byUser = new Map<string, RunningCalls>();

  endedGrants?.listen((grantId) => endCallsOf(({ id }) => id === grantId));

  /**
   * Counts the call, and the bytes of its body, until the returned function is called.
   *
   * @throws GatewayError `too_many_calls` for its user, `overloaded` for the process, `token_revoked`.
   */
  return function countCall(call: RunningCall): () => void {
    const { user } = call;
    // The login ended just after the token was verified.
    if (user?.grant !== undefined && endedGrants?.hasEnded(user.grant.id)) fail('token_revoked');
    const startedAt = clock.monotonic();
    const name = user && nameOwner(user);
    const known = name === undefined ? undefined : byUser.get(name);
    const max = maxCallsPerUser > 0 ? maxCallsPerUser : Number.POSITIVE_INFINITY;
    if (known !== undefined && known.size >= max && hasTooManyLong(known, max, startedAt))
      fail('too_many_calls', { data: { retryAfter: 1 }, headers: { 'Retry-After': '1' } });
    if (all.size >= MAX_IN_ALL && hasTooManyLong(all, MAX_IN_ALL, startedAt))
      fail('overloaded', {
        details: `${MAX_IN_ALL} calls are running in this process. Try again.`,
        headers: { 'Retry-After': '1' },
      });
    let callsOfUser = known;
    if (name !== undefined && callsOfUser === undefined) {
      callsOfUser = new LinkedList();
      byUser.set(name, callsOfUser);
    }
    const running = { startedAt, call };
    const releaseBody = call.holdBody();
    const link = all.add(running);
    const linkOfUser = callsOfUser?.add(running);
    if (!isLooking) lookForLong();

    return function end() {
      all.remove(link);
      callsOfUser?.remove(linkOfUser);
      releaseBody();
    };
  };

  function endCallsOf(hasEnded: (grant: NonNullable<UserContext['grant']>) => boolean) {
    const ended = [...all].filter(({ call: { user } }) => user?.grant && hasEnded(user.grant));
    for (const { call } of ended) call.abort(new GatewayError('token_revoked'));
  }

  /** One timer for all calls: nearly all are short, and need none. */
  function lookForLong() {
    isLooking = true;
    clock.after(LOOK_FOR_LONG_MS, () => {
      isLooking = false;
      const now = clock.now();
      endCallsOf(({ endsAt }) => endsAt !== undefined && endsAt <= now);
      if (streamAfterMs > 0) {
        const ticks = clock.monotonic();
        for (const { startedAt, call } of all) {
          const ranMs = ticks - startedAt;
          if (ranMs < beginAfterMs) break;
          call.stream.begin(ranMs >= streamAfterMs);
        }
      }
      // Not at the end of each call: see `LinkedList` about Maps that grow and shrink with calls.
      for (const [user, { size }] of byUser) if (size === 0) byUser.delete(user);
      if (all.size > 0) lookForLong();
    });
  }
}

/** True if this many calls have been running for a long time. */
function hasTooManyLong(calls: RunningCalls, max: number, now: number) {
  let count = 0;
  for (const { startedAt } of calls) {
    if (now - startedAt <= LONG_MS) return false;
    if (++count === max) return true;
  }
  return false;
}
