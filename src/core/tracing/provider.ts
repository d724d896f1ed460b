// §21.2: how spans reach the collector: in batches, by OTLP over HTTP.
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { type Clock, pause } from '../clock.ts';
import type { CollectorConfig } from '../config/groups/tracing.ts';
import { generateInstanceId } from '../ids.ts';
import type { Log } from '../log.ts';
import { createWarnThrottle } from '../log-throttle.ts';
import { PACKAGE_VERSION } from '../version.ts';

export interface ProviderDeps {
  readonly clock: Clock;
  readonly log: Log;
}

/** How long the end of the service waits for the collector. */
const CLOSE_MS = 2000;

export async function createProvider(
  config: CollectorConfig,
  deps: ProviderDeps,
): Promise<{ readonly provider: TracerProvider; close(): Promise<void> }> {
  const exporter = watchExporter(await createExporter(config), config, deps);
  const provider = new TracerProvider({
    resource: resourceFromAttributes({
      'service.version': PACKAGE_VERSION,
      'service.instance.id': generateInstanceId(),
      ...config.resourceAttributes,
      'service.name': config.serviceName,
    }),
    sampler: createSampler(config.sampler),
    spanProcessors: [new BatchSpanProcessor({ exporter })],
  });
  return {
    provider,
    async close() {
      const ended = provider.shutdown().catch(() => {});
      await Promise.race([ended, pause(deps.clock, CLOSE_MS)]);
    },
  };
}

async function createExporter({ url, protocol, headers }: CollectorConfig): Promise<SpanExporter> {
  const { OTLPTraceExporter } =
    protocol === 'http/json'
      ? await import('@opentelemetry/exporter-trace-otlp-http')
      : await import('@opentelemetry/exporter-trace-otlp-proto');
  return new OTLPTraceExporter({ url, headers });
}

function createSampler({ ratio, followsCaller }: CollectorConfig['sampler']): Sampler {
  const root = new TraceIdRatioBasedSampler(ratio);
  return followsCaller ? new ParentBasedSampler({ root }) : root;
}

/** The SDK itself tells nobody that its spans are lost. */
function watchExporter(
  exporter: SpanExporter,
  { url }: CollectorConfig,
  { clock, log }: ProviderDeps,
): SpanExporter {
  const warn = createWarnThrottle(clock, (cause: unknown) =>
    log.warn(
      'The collector does not take traces, and they are lost. Check OTEL_EXPORTER_OTLP_ENDPOINT, and that it speaks OTLP over HTTP.',
      { collector: url, cause },
    ),
  );
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        if (result.code !== 0) warn(result.error);
        done(result);
      }),
    shutdown: () => exporter.shutdown(),
    forceFlush: async () => exporter.forceFlush?.(),
  };
}
