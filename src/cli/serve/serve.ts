import type { Config } from '../../config/config.ts';
import type { Gateway } from '../../gateway/gateway.ts';
import type { Catalog } from '../../mcp/catalog/catalog.ts';
import { createLog } from '../../platform/log.ts';
import { type EnvFile, logEnvironment } from '../command/env-file.ts';
import { describeCommand, describeWithPort } from '../command/invocation.ts';
import { handleProcessEnd } from '../command/process-end.ts';
import { type ConfigFile, logConfigFile } from '../setup/config-file/open-config-file.ts';
import type { Setup } from '../setup/config-file/read-setup.ts';
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
