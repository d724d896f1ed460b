import type { Config } from '../core/config/config.ts';
import { createLog } from '../core/log.ts';
import type { Catalog } from '../features/mcp/catalog/catalog.ts';
import type { Gateway } from '../gateway.ts';
import { type ConfigFile, logConfigFile } from './config-file/open-config-file.ts';
import type { Setup } from './config-file/read-setup.ts';
import type { EnvFile } from './env-file.ts';
import { describeCommand, describeWithPort } from './invocation.ts';
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
  /** Called once the configuration file is loaded anew. */
  readonly onReload?: (setup: Setup, changed: readonly string[]) => void;
}

/**
 * Starts the service, which ends with the process.
 *
 * @throws StartError with the lines to print.
 */
export async function serve(config: Config, options: ServeOptions = {}): Promise<Gateway> {
  const { catalog, envFile, configFile, alsoClose = async () => {}, onReload } = options;
  const log = createLog(config.server.logLevel, { format: config.server.logFormat });
  logEnvironment(log, envFile);
  if (configFile !== undefined) logConfigFile(log, configFile);
  return runGateway(
    config,
    { log, lockCommand: describeCommand(['lock'], process), ...(catalog && { catalog }) },
    {
      handleEnd: (close) => handleProcessEnd(log, close),
      alsoClose,
      configFile,
      onReload,
      describeWithPort,
    },
  );
}
