import type { Config } from '../core/config/config.ts';
import { createLog } from '../core/log.ts';
import type { Catalog } from '../features/mcp/catalog/catalog.ts';
import { type ConfigFile, logConfigFile } from './config-file/open-config-file.ts';
import type { EnvFile } from './env-file.ts';
import { logEnvironment } from './log-environment.ts';
import { handleProcessEnd } from './process-end.ts';
import { runGateway } from './run-gateway.ts';

export interface ServeOptions {
  /** Instead of the built-in one. */
  readonly catalog?: Catalog | undefined;
  readonly envFile?: EnvFile | undefined;
  readonly configFile?: ConfigFile | undefined;
  /** What is closed after the service. */
  readonly alsoClose?: () => Promise<void>;
}

/**
 * Starts the service, which ends with the process.
 *
 * @throws StartError with the lines to print.
 */
export async function serve(config: Config, options: ServeOptions = {}): Promise<void> {
  const { catalog, envFile, configFile, alsoClose = async () => {} } = options;
  const log = createLog(config.server.logLevel);
  logEnvironment(log, envFile);
  if (configFile !== undefined) logConfigFile(log, configFile);
  await runGateway(
    config,
    { log, ...(catalog && { catalog }) },
    {
      handleEnd: (close) => handleProcessEnd(log, close),
      alsoClose,
      configFile,
    },
  );
}
