// Spec §4.11: the metrics endpoint.
import type { Reply } from '../../core/message.ts';
import { METRICS_CONTENT_TYPE, type Metrics } from '../../core/metrics/metrics.ts';

/**
 * `activeSessions` asks the store; when it cannot answer the gauge is left out and the rest of
 * the metrics, needed most during an outage, is still served.
 */
export const createMetricsEndpoint = (
  metrics: Metrics,
  activeSessions: () => Promise<number>,
): (() => Promise<Reply>) =>
  async function exposeMetrics() {
    const active = await activeSessions().catch(() => undefined);
    return {
      status: 200,
      headers: { 'Content-Type': METRICS_CONTENT_TYPE, 'Cache-Control': 'no-store' },
      body: await metrics.exposition(active),
    };
  };
