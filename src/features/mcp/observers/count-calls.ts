// §4.11: calls in numbers.
import type { Clock } from '../../../core/clock.ts';
import type { Metrics } from '../../../core/metrics/metrics.ts';
import type { CallObserver } from '../calls/observer.ts';
import type { Outcome } from '../calls/outcome.ts';

export interface CountCallsDeps {
  readonly metrics: Metrics;
  readonly clock: Clock;
}

export const countCalls = ({ metrics, clock }: CountCallsDeps): CallObserver => ({
  admit({ id, method, era }) {
    if (id !== undefined) metrics.recordMcpRequest(method?.name ?? 'other', era);
  },
  /** Known tools only: series are named after them. A refused call (wrong input, a question) is not counted. */
  end({ method, subject = '', era, startedAt, outcome }) {
    if (method?.item?.kind !== 'tool' || outcome === undefined) return;
    const status = toStatus(outcome);
    if (status === undefined) return;
    metrics.recordToolCall(subject, status, era, (clock.monotonic() - startedAt) / 1000);
  },
});

function toStatus(outcome: Outcome): 'success' | 'error' | 'exception' | undefined {
  if (outcome.kind === 'success') return 'success';
  if (outcome.kind === 'tool_error') return 'error';
  const hasThrown = outcome.kind === 'failure' && outcome.error.key === 'tool_failed';
  return hasThrown ? 'exception' : undefined;
}
