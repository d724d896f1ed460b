// WORKERS: the main process, which serves nothing itself.
import type { Config } from '../../../config/config.ts';
import { logListening, logStartWarnings } from '../../../config/start-log.ts';
import { createLog } from '../../../platform/log.ts';
import { type EnvFile, logEnvironment } from '../../command/env-file.ts';
import { handleProcessEnd } from '../../command/process-end.ts';
import { describeProtection } from '../../setup/config-file/find-losses.ts';
import { onHangUp } from '../../setup/config-file/hang-up.ts';
import { type ConfigFile, logConfigFile } from '../../setup/config-file/open-config-file.ts';
import { createWorkerPool } from './worker-pool.ts';

export interface SuperviseOptions {
  /** How many. */
  readonly workers: number;
  readonly envFile: EnvFile | undefined;
  /** Each worker reads and follows it itself. */
  readonly configFile: ConfigFile | undefined;
}

/**
 * Serves with several processes, which end with this one.
 *
 * @throws StartError when a worker was killed before it served.
 */
export async function superviseWorkers(
  config: Config,
  { workers, envFile, configFile }: SuperviseOptions,
): Promise<void> {
  const log = createLog(config.server.logLevel, { format: config.server.logFormat });
  logEnvironment(log, envFile);
  if (configFile !== undefined) logConfigFile(log, configFile);
  logStartWarnings(config, log);
  const pool = createWorkerPool(log, configFile && describeProtection(configFile.setup));
  handleProcessEnd(log, pool.close);
  if (configFile !== undefined) onHangUp({ reload: pool.hangUp, close: pool.close });
  await pool.start(workers);
  logListening(config, config.server.port, log, { workers });
}
