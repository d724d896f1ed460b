import type { TracingConfig } from '../../config/groups/telemetry.ts';
import { getErrorCode } from '../../platform/error-code.ts';
import type { ClockAndLog } from '../../platform/log.ts';
import type { Tracing } from './tracing.ts';

/** OpenTelemetry cannot be loaded: a one-line message for the operator, without a stack. */
export class TracingError extends Error {
  override readonly name = 'TracingError';
}

/**
 * Undefined without `OTEL_EXPORTER_OTLP_ENDPOINT`: then OpenTelemetry is not loaded. `hasOwnTools` is true if there are tools
 * that may create spans with OpenTelemetry's API.
 *
 * @throws TracingError if its packages are missing.
 */
export async function openTracing(
  config: TracingConfig,
  watch: ClockAndLog,
  hasOwnTools: boolean,
): Promise<Tracing | undefined> {
  if (config.collector === undefined) return undefined;
  try {
    const { createOpenTelemetry } = await import('./open-telemetry.ts');
    return await createOpenTelemetry(config.collector, watch, hasOwnTools);
  } catch (error) {
    if (getErrorCode(error) !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new TracingError(
      'OTEL_EXPORTER_OTLP_ENDPOINT is set, but the packages of OpenTelemetry are missing: npm did not install optional packages (--omit=optional, or the download failed). Install again with --include=optional, or remove the variable.',
    );
  }
}
