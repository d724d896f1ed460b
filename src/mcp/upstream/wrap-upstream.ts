// §18.3, §18.4, §18.8: wrappers around a server, whatever its transport: metrics, spans, roots, requests in flight, and the
// audiences that share its lists.

import { hash } from 'node:crypto';
import { catalogue } from '../../errors/catalogue.ts';
import type { Clock } from '../../platform/clock.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import type { Log } from '../../platform/log.ts';
import { createWarnOnce } from '../../platform/throttle.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { nameOwner } from '../../store/keys.ts';
import type { Attributes, Tracing } from '../../telemetry/tracing/tracing.ts';
import { describeItem, METHODS_BY_NAME } from '../protocol/methods.ts';
import { CallRefusedError } from './failures.ts';
import { refuseQuestion } from './server-request.ts';
import {
  GATEWAY_CALLER,
  METHOD_NOT_FOUND,
  type Upstream,
  type UpstreamCaller,
  UpstreamError,
  type UpstreamFailure,
  type UpstreamQuestion,
  type UpstreamRequest,
} from './upstream.ts';

/** The same server with some functions replaced. */
export const wrapUpstream = (
  upstream: Upstream,
  changed: Partial<Omit<Upstream, 'config' | 'facts' | 'isUp' | 'era'>>,
): Upstream => ({
  config: upstream.config,
  facts: upstream.facts,
  get isUp() {
    return upstream.isUp;
  },
  get era() {
    return upstream.era;
  },
  logins: upstream.logins,
  request: upstream.request,
  describe: upstream.describe,
  peekDescription: upstream.peekDescription,
  listen: upstream.listen,
  onStateChange: upstream.onStateChange,
  endSession: upstream.endSession,
  close: upstream.close,
  ...changed,
});

// §18.8: metrics of requests to a server, and of its availability.

/** Methods that the gateway sends; all others share one series. */
const METHODS = new Set([
  'completion/complete',
  'prompts/get',
  'prompts/list',
  'resources/directory/read',
  'resources/list',
  'resources/read',
  'resources/subscribe',
  'resources/templates/list',
  'resources/unsubscribe',
  'skills/get',
  'skills/list',
  'tools/call',
  'tools/list',
]);

export function observeUpstream(
  { metrics, clock }: Pick<Runtime, 'metrics' | 'clock'>,
  upstream: Upstream,
): Upstream {
  const { name } = upstream.config;
  // Logged by the transport, which knows the reason.
  upstream.onStateChange((isUp) => metrics.recordUpstreamState(name, isUp));

  return wrapUpstream(upstream, {
    async request(caller, request) {
      const startedAt = clock.monotonic();
      const method = METHODS.has(request.method) ? request.method : 'other';
      let status: 'success' | UpstreamFailure = 'success';
      try {
        return await upstream.request(caller, request);
      } catch (error) {
        status = error instanceof UpstreamError ? error.failure : 'error';
        throw error;
      } finally {
        metrics.recordUpstreamRequest(name, method, status, (clock.monotonic() - startedAt) / 1000);
      }
    },
  });
}

// §21.2: spans of requests to servers, by OpenTelemetry's conventions for MCP; the server gets the trace context.
// Arguments are never recorded.

export function traceUpstream(upstream: Upstream, tracing: Tracing): Upstream {
  const place = { 'postern.server': upstream.config.name, ...upstream.facts.attributes };

  return wrapUpstream(upstream, {
    async request(caller, request) {
      const span = tracing.startChild({
        name: nameRequest(request),
        kind: 'client',
        attributes: { ...place, ...describeRequest(request) },
      });
      // A request that is not sampled is passed on with the trace context of the caller.
      if (span === undefined) return upstream.request(caller, request);
      const send = () => upstream.request(caller, { ...request, trace: span.getContext() });
      try {
        const result = await span.run(send);
        if (result.isError === true) span.fail('tool_error');
        return result;
      } catch (thrown) {
        const { failure, jsonRpcError } =
          thrown instanceof UpstreamError ? thrown : UNKNOWN_FAILURE;
        const code = jsonRpcError && String(jsonRpcError.code);
        if (code !== undefined) span.setAttributes({ 'rpc.response.status_code': code });
        span.fail(code ?? failure);
        throw thrown;
      } finally {
        span.end();
      }
    },
  });
}

const UNKNOWN_FAILURE = { failure: '_OTHER', jsonRpcError: undefined };

/** No URIs: there are too many for span names, and they may contain secrets. */
const nameRequest = ({ method, name }: UpstreamRequest) =>
  name === undefined || method.startsWith('resources/') ? method : `${method} ${name}`;

const describeRequest = ({ method, name }: UpstreamRequest): Attributes => ({
  'mcp.method.name': method,
  'gen_ai.operation.name': method === 'tools/call' ? 'execute_tool' : undefined,
  ...describeItem(METHODS_BY_NAME.get(method)?.item, name),
});

// §18.3: roots are folders on the machines of users. A server gets them only if the configuration file says so.

/** The same server, to which no client has roots unless the file says `"roots": true`. */
export function withholdRoots(upstream: Upstream, log: Log): Upstream {
  const { config } = upstream;
  if (config.roots) return upstream;
  const notTold = `The gateway does not tell ${config.name} the roots of clients, as its configuration file does not say "roots": true for ${config.name}.`;
  const warnOnce = createWarnOnce(log);
  const noteQuestion = () =>
    warnOnce(
      'roots',
      `The MCP server ${config.name} requests roots, the folders that its callers work on, and does not get them. If it may know them, set "roots": true for it in the configuration file.`,
      { server: config.name },
    );

  /** Servers should not ask for roots that no client declared. */
  const refuseRoots = (answer: OnRequest): OnRequest =>
    async function answerQuestion(question, signal) {
      if (!isAboutRoots(question)) return answer(question, signal);
      noteQuestion();
      throw refuseQuestion(notTold, METHOD_NOT_FOUND);
    };

  async function requestWithoutRoots(
    caller: UpstreamCaller,
    request: UpstreamRequest,
  ): Promise<JsonObject> {
    const { onRequest } = request;
    const answered = { ...request, ...(onRequest && { onRequest: refuseRoots(onRequest) }) };
    try {
      const result = await upstream.request(withoutRoots(caller), answered);
      return asksForRoots(result) ? refuseCall() : result;
    } catch (thrown) {
      throw needsRoots(thrown) ? refuseCall() : thrown;
    }
  }

  /** The client has roots: the server's own error would be wrong about that. */
  function refuseCall(): never {
    noteQuestion();
    throw new CallRefusedError(`${config.name} needs roots for this call. ${notTold}`);
  }

  return wrapUpstream(upstream, {
    request: (caller, request) =>
      caller.capabilities.roots
        ? requestWithoutRoots(caller, request)
        : upstream.request(caller, request),
    describe: (caller) => upstream.describe(withoutRoots(caller)),
    peekDescription: (caller) => upstream.peekDescription(withoutRoots(caller)),
    listen: (caller, listener, uris) => upstream.listen(withoutRoots(caller), listener, uris),
    endSession: (caller) => upstream.endSession(withoutRoots(caller)),
  });
}

type OnRequest = NonNullable<UpstreamRequest['onRequest']>;

/** The same object for the gateway itself, and for clients without roots. */
const withoutRoots = (caller: UpstreamCaller): UpstreamCaller =>
  caller.capabilities.roots
    ? { ...caller, capabilities: { ...caller.capabilities, roots: false } }
    : caller;

const isAboutRoots = ({ method }: Partial<UpstreamQuestion>) => method === 'roots/list';

/** A server of the stateless era asks in its result. */
function asksForRoots({ resultType, inputRequests }: JsonObject) {
  if (resultType !== 'input_required' || !isObject(inputRequests)) return false;
  return Object.values(inputRequests).some((one) => isObject(one) && isAboutRoots(one));
}

/** Or in an error: the client declared too little (MCP 2026-07-28, `MissingRequiredClientCapability`). */
function needsRoots(thrown: unknown) {
  const { code, data } = (thrown instanceof UpstreamError && thrown.jsonRpcError) || {};
  const required = isObject(data) ? data.requiredCapabilities : undefined;
  return (
    code === catalogue.missing_client_capability.jsonrpc.code &&
    isObject(required) &&
    Object.hasOwn(required, 'roots')
  );
}

// §18.4: audiences: groups of callers who get the same data from a server.

/** One name per user and client if the server can tell them apart (`isPersonal`), otherwise one for all. */
export const createNameAudience = (isPersonal: boolean): ((caller: UpstreamCaller) => string) =>
  isPersonal ? nameCaller : () => EVERYBODY;

const EVERYBODY = '';

/**
 * An account at a server is one audience, whoever uses it. Users choose their names: hashed, none can be mistaken for the gateway
 * itself, and all have the same length.
 */
const nameCaller = (caller: UpstreamCaller) =>
  caller === GATEWAY_CALLER
    ? 'gateway'
    : (caller.connectionId ??
      hash(
        'sha256',
        JSON.stringify([caller.user && nameOwner(caller.user), caller.clientId]),
        'base64url',
      ));

/** Requests in flight at a server, so that they can end before the server is closed. */
export class InFlight {
  private readonly clock: Clock;
  private count = 0;
  private hasEnded = false;
  private onIdle: (() => void) | undefined = undefined;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Before a request; `leave` follows. @throws UpstreamError once it has ended. */
  enter(): void {
    if (this.hasEnded) throw new UpstreamError('unavailable', 'it is no longer served');
    this.count += 1;
  }

  /** The request has ended. */
  leave(): void {
    this.count -= 1;
    if (this.count === 0) this.onIdle?.();
  }

  async run<Value>(work: () => Promise<Value>): Promise<Value> {
    this.enter();
    try {
      return await work();
    } finally {
      this.leave();
    }
  }

  /** Accepts no more requests, and resolves when none is in flight, or after this many milliseconds. */
  async end(graceMs: number): Promise<void> {
    this.hasEnded = true;
    if (this.count === 0) return;
    await new Promise<void>((resolve) => {
      const cancel = this.clock.after(graceMs, resolve);
      this.onIdle = () => {
        cancel();
        resolve();
      };
    });
  }
}
