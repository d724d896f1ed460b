// §4.11: the metrics endpoint.
import type { Endpoint } from '../endpoint/endpoint.ts';
import { JSONRPC } from '../endpoint/render-error.ts';
import { METRICS_CONTENT_TYPE, type Metrics } from '../telemetry/metrics/metrics.ts';

/**
 * `countSessions` asks the store; when it cannot answer the gauge is left out and the rest of
 * the metrics, needed most during an outage, is still served.
 */
export const createMetricsEndpoints = (
  metrics: Metrics,
  countSessions: () => Promise<number>,
): readonly Endpoint[] => [
  {
    kind: 'open',
    method: 'GET',
    path: '/metrics',
    errors: JSONRPC,
    isProbe: true,
    async handle() {
      const activeSessions = await countSessions().catch(() => undefined);
      return {
        status: 200,
        headers: { 'Content-Type': METRICS_CONTENT_TYPE, 'Cache-Control': 'no-store' },
        body: await metrics.renderOpenMetrics(activeSessions),
      };
    },
  },
];
