// §21.2: the span of a request to /mcp says whether its call failed, by OpenTelemetry's conventions for MCP.
import { toGatewayError } from '../../core/errors/gateway-error.ts';
import type { Span, Tracing } from '../../core/tracing/tracing.ts';
import { InputRequired } from './calls/call-tool.ts';
import type { MethodResult } from './calls/methods.ts';
import type { RunMethod } from './calls/run-method.ts';

export const traceCalls = (runMethod: RunMethod, tracing: Tracing): RunMethod =>
  function runTraced(...call) {
    const span = tracing.getActiveSpan();
    const work = runMethod(...call);
    return span === undefined ? work : watchWork(work, span);
  };

/** Apart from the call, so that nothing of it is kept while it runs. */
const watchWork = (work: Promise<MethodResult>, span: Span): Promise<MethodResult> =>
  work.then(
    (ended) => {
      if ('isError' in ended.result && ended.result.isError === true) span.fail('tool_error');
      return ended;
    },
    (thrown: unknown) => {
      if (!(thrown instanceof InputRequired)) failSpan(span, thrown);
      throw thrown;
    },
  );

function failSpan(span: Span, thrown: unknown): void {
  const { failure, row } = toGatewayError(thrown);
  const code = String(failure.jsonRpc?.code ?? row.jsonrpc?.code ?? '_OTHER');
  span.setAttributes({ 'rpc.response.status_code': code });
  span.fail(code);
}
