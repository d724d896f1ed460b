import type { TracingConfig } from '../../config/groups/telemetry.ts';
import { getErrorCode } from '../../platform/error-code.ts';
import type { ClockAndLog } from '../../platform/log.ts';
import type { Tracing } from './tracing.ts';

/** OpenTelemetry cannot be loaded: one line for the operator, no stack. */
export class TracingError extends Error {
  override readonly name = 'TracingError';
}

/**
 * Undefined without `OTEL_EXPORTER_OTLP_ENDPOINT`: then nothing of OpenTelemetry is loaded. `hasOwnTools` where there are tools that
 * may make spans by OpenTelemetry's API.
 *
 * @throws TracingError when its packages are missing.
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
