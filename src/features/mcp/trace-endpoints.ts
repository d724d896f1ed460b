// §21.2: the span of a request to /mcp says what it asks, by OpenTelemetry's conventions for MCP. Never an argument.
import type {
  Endpoint,
  JudgedCall,
  ProtectedCall,
  ProtectedEndpoint,
} from '../../core/endpoint.ts';
import { isObject, type JsonObject } from '../../core/json.ts';
import { truncateForLog } from '../../core/log.ts';
import { type GatewayRequest, getHeader, getJson, type Reply } from '../../core/message.ts';
import { stripUri } from '../../core/strip-uri.ts';
import type { Attributes, RequestTrace } from '../../core/tracing/tracing.ts';
import { isRequestId, readMeta } from './protocol/json-rpc.ts';
import { readTraceContext } from './protocol/trace-context.ts';

/** The same endpoints. Whatever a message is passed on to belongs to its span from here on. */
export const traceMcpEndpoints = (endpoints: readonly Endpoint[]): readonly Endpoint[] =>
  endpoints.map((endpoint) =>
    endpoint.kind === 'protected' && endpoint.body === 'json'
      ? { ...endpoint, judge: traceJudge(endpoint.judge) }
      : endpoint,
  );

function traceJudge(judge: ProtectedEndpoint['judge']) {
  return function judgeTraced(call: ProtectedCall): JudgedCall {
    const { trace } = call.request;
    const message = getJson(call.body);
    if (trace === undefined || !isObject(message)) return judge(call);
    trace.offerParent(readTraceContext(readMeta(message.params)));
    const traced = passTrace(call, message, trace);
    const span = trace.getSpan();
    if (span === undefined) return judge(traced);
    span.setAttributes(describeMessage(message, call.request));
    const { access, run } = judge(traced);
    const name = nameMessage(message);
    return { access, run: (session) => nameAtEnd(trace, name, run(session)) };
  };
}

/** `_meta` is where the rest of the gateway, its tools and other servers read it. */
function passTrace(call: ProtectedCall, message: JsonObject, trace: RequestTrace): ProtectedCall {
  const { params = {}, method } = message;
  if (typeof method !== 'string' || !isObject(params) || call.body.type !== 'json') return call;
  const { tracestate: _, ...meta } = readMeta(params);
  const traced = { ...params, _meta: { ...meta, ...trace.getContext() } };
  return { ...call, body: { ...call.body, value: { ...message, params: traced } } };
}

/** Of each method that is about one thing: what it is called, and by which parameter. */
const SUBJECTS = new Map<unknown, readonly [param: string, attribute: string]>([
  ['tools/call', ['name', 'gen_ai.tool.name']],
  ['prompts/get', ['name', 'gen_ai.prompt.name']],
  ['resources/read', ['uri', 'mcp.resource.uri']],
]);

/** What callers may write as they like is no name: there would be as many as they like. */
const NAMED_METHODS: ReadonlySet<unknown> = new Set([
  ...SUBJECTS.keys(),
  'initialize',
  'notifications/initialized',
  'notifications/cancelled',
  'notifications/roots/list_changed',
  'ping',
  'server/discover',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'resources/subscribe',
  'resources/unsubscribe',
  'subscriptions/listen',
  'completion/complete',
  'logging/setLevel',
]);

function describeMessage({ id, method, params }: JsonObject, request: GatewayRequest): Attributes {
  if (typeof method !== 'string') return {};
  const [param = '', attribute = ''] = SUBJECTS.get(method) ?? [];
  const subject = isObject(params) ? params[param] : undefined;
  const version = getHeader(request, 'mcp-protocol-version');
  return {
    'mcp.method.name': truncateForLog(method),
    'mcp.protocol.version': version && truncateForLog(version),
    'jsonrpc.request.id': isRequestId(id) ? truncateForLog(String(id)) : undefined,
    'network.transport': 'tcp',
    'network.protocol.name': 'http',
    ...(typeof subject === 'string' && {
      [attribute]: truncateForLog(param === 'uri' ? stripUri(subject) : subject),
    }),
    ...(method === 'tools/call' && { 'gen_ai.operation.name': 'execute_tool' }),
  };
}

interface MessageName {
  /** Undefined for one that MCP does not have. */
  readonly method: string | undefined;
  /** Of tools and prompts; URIs are too many. */
  readonly target: string | undefined;
}

function nameMessage({ method, params }: JsonObject): MessageName {
  const [param] = SUBJECTS.get(method) ?? [];
  const target = param === 'name' && isObject(params) ? params.name : undefined;
  return {
    method: typeof method === 'string' && NAMED_METHODS.has(method) ? method : undefined,
    target: typeof target === 'string' ? truncateForLog(target) : undefined,
  };
}

/** Apart from the message, so that a call that waits does not keep it. */
async function nameAtEnd(
  trace: RequestTrace,
  { method, target }: MessageName,
  replying: Reply | Promise<Reply>,
): Promise<Reply> {
  const reply = await replying;
  if (method !== undefined) {
    // Whoever has an answer named something that there is. A notification has none.
    const isKnown = target !== undefined && reply.status === 200 && reply.error === undefined;
    trace.setName(isKnown ? `${method} ${target}` : method);
  }
  return reply;
}
