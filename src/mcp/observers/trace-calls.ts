// §21.2: the span of a request to /mcp says what it asks and whether that failed, by OpenTelemetry's conventions for MCP.
// Never an argument.

import { getHeader } from '../../endpoint/message.ts';
import type { GatewayError } from '../../errors/gateway-error.ts';
import { truncateForLog } from '../../platform/log.ts';
import { stripUri } from '../../platform/strip-uri.ts';
import type { Attributes, Span } from '../../telemetry/tracing/tracing.ts';
import type { CallObserver, CallRecord } from '../calls/call.ts';

export const traceCalls: CallObserver = {
  receive(record) {
    const { trace } = record.request;
    if (trace === undefined) return;
    trace.offerParent(record.trace);
    // Whatever the message is passed on to belongs to its span from here on.
    record.trace = trace.getContext();
    trace.getSpan()?.setAttributes(describeMessage(record));
  },
  admit({ request: { trace }, method }) {
    // Only known methods name a span: callers could otherwise make any number of names.
    if (method !== undefined) trace?.setName(method.name);
  },
  end({ request: { trace }, method, subject, outcome }) {
    const span = trace?.getSpan();
    if (trace === undefined || span === undefined || outcome === undefined) return;
    if (outcome.kind === 'tool_error') span.fail('tool_error');
    if ('error' in outcome) failSpan(span, outcome.error);
    // Whoever has an answer named something that there is; URIs are too many.
    else if (method?.item?.param === 'name' && subject !== undefined) {
      trace.setName(`${method.name} ${truncateForLog(subject)}`);
    }
  },
};

function failSpan(span: Span, { failure, row }: GatewayError): void {
  const code = String(failure.jsonRpc?.code ?? row.jsonrpc?.code ?? '_OTHER');
  span.setAttributes({ 'rpc.response.status_code': code });
  span.fail(code);
}

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
    ...(item !== undefined &&
      subject !== undefined && {
        [item.spanAttribute]: truncateForLog(item.param === 'uri' ? stripUri(subject) : subject),
      }),
    ...(item?.kind === 'tool' && { 'gen_ai.operation.name': 'execute_tool' }),
  };
}
