// §21.2: requests to servers behind the gateway as spans, by OpenTelemetry's conventions for MCP; the server is told of
// the span. Never an argument.
import { truncateForLog } from '../platform/log.ts';
import { stripUri } from '../platform/strip-uri.ts';
import type { Attributes, Span, Tracing } from '../telemetry/tracing/tracing.ts';
import type { UpstreamConfig } from './config/upstream-config.ts';
import { type Upstream, UpstreamError, type UpstreamRequest } from './upstream.ts';
import { wrapUpstream } from './wrap-upstream.ts';

export function traceUpstream(
  upstream: Upstream<UpstreamConfig>,
  tracing: Tracing,
): Upstream<UpstreamConfig> {
  const place = describePlace(upstream);

  return wrapUpstream(upstream, {
    request(caller, request) {
      const span = tracing.startChild({
        name: nameRequest(request),
        kind: 'client',
        attributes: { ...place, ...describeRequest(request) },
      });
      // What is not recorded is passed on all the same, as it came: the server follows.
      if (span === undefined) return upstream.request(caller, request);
      const send = () => upstream.request(caller, { ...request, trace: span.getContext() });
      return watchRequest(span.run(send), span);
    },
  });
}

const watchRequest = <Result extends object>(
  working: Promise<Result>,
  span: Span,
): Promise<Result> =>
  working.then(
    (result) => {
      if ('isError' in result && result.isError === true) span.fail('tool_error');
      span.end();
      return result;
    },
    (thrown: unknown) => {
      failSpan(span, thrown);
      span.end();
      throw thrown;
    },
  );

function failSpan(span: Span, thrown: unknown): void {
  if (!(thrown instanceof UpstreamError)) {
    span.fail('_OTHER');
    return;
  }
  const code = thrown.jsonRpcError?.code;
  if (code === undefined) {
    span.fail(thrown.failure);
    return;
  }
  span.setAttributes({ 'rpc.response.status_code': String(code) });
  span.fail(String(code));
}

function describePlace({ config }: Upstream<UpstreamConfig>): Attributes {
  const place = { 'postern.server': config.name };
  if (config.kind === 'stdio') return { ...place, 'network.transport': 'pipe' };
  const { protocol, hostname, port } = new URL(config.url);
  return {
    ...place,
    'network.transport': 'tcp',
    'network.protocol.name': 'http',
    'server.address': hostname,
    'server.port': Number(port || (protocol === 'https:' ? 443 : 80)),
  };
}

/** URIs are too many for the name of a span, and not all of one may be told. */
const nameRequest = ({ method, name }: UpstreamRequest): string =>
  name === undefined || method.startsWith('resources/') ? method : `${method} ${name}`;

function describeRequest({ method, name }: UpstreamRequest): Attributes {
  const subject = name === undefined ? undefined : truncateForLog(name);
  return {
    'mcp.method.name': method,
    'gen_ai.operation.name': method === 'tools/call' ? 'execute_tool' : undefined,
    'gen_ai.tool.name': method === 'tools/call' ? subject : undefined,
    'gen_ai.prompt.name': method === 'prompts/get' ? subject : undefined,
    'mcp.resource.uri':
      method === 'resources/read' && name !== undefined
        ? truncateForLog(stripUri(name))
        : undefined,
  };
}
