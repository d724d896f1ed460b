// §18.8: what a server is asked is counted and timed, and whether it is up.
import type { Clock } from '../../platform/clock.ts';
import type { Metrics } from '../../telemetry/metrics/metrics.ts';
import type { CommonUpstreamConfig } from '../config/common-config.ts';
import { type Upstream, UpstreamError, type UpstreamFailure } from '../upstream.ts';
import { wrapUpstream } from '../wrap-upstream.ts';

export interface ObserveDeps {
  readonly metrics: Metrics;
  readonly clock: Clock;
}

/** Methods that the gateway sends: others, should there be any, are one series. */
const METHODS: ReadonlySet<string> = new Set([
  'completion/complete',
  'prompts/get',
  'prompts/list',
  'resources/list',
  'resources/read',
  'resources/subscribe',
  'resources/templates/list',
  'resources/unsubscribe',
  'tools/call',
  'tools/list',
]);

export function observeUpstream<Config extends CommonUpstreamConfig>(
  upstream: Upstream<Config>,
  deps: ObserveDeps,
): Upstream<Config> {
  const { metrics, clock } = deps;
  const { name } = upstream.config;
  // The transport logs it: it knows why.
  upstream.onStateChange((isUp) => metrics.recordUpstreamState(name, isUp));

  return wrapUpstream(upstream, {
    request(caller, request) {
      const startedAt = clock.monotonic();
      const method = METHODS.has(request.method) ? request.method : 'other';
      const record = (status: 'success' | UpstreamFailure) =>
        metrics.recordUpstreamRequest(name, method, status, (clock.monotonic() - startedAt) / 1000);
      return upstream.request(caller, request).then(
        (result) => {
          record('success');
          return result;
        },
        (error: unknown) => {
          record(error instanceof UpstreamError ? error.failure : 'error');
          throw error;
        },
      );
    },
  });
}
