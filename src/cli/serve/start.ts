import { loadConfig } from '../../config/load.ts';
import { prepareEnvironment } from '../command/env-file.ts';
import { endWithNpx } from '../command/process-end.ts';
import { loadCatalog } from '../setup/catalog-file/load-catalog.ts';
import { openConfigFile } from '../setup/config-file/open-config-file.ts';
import { countWorkers } from './count-workers.ts';

export interface StartOptions {
  /** In place of POSTERN_CATALOG. */
  readonly catalog: string | undefined;
  /** In place of POSTERN_CONFIG. */
  readonly config: string | undefined;
  /** In place of PORT. */
  readonly port: string | undefined;
}

/** `postern start`: the service, configured by environment variables. */
export async function start(options: StartOptions): Promise<void> {
  endWithNpx();
  const envFile = prepareEnvironment(options, process.env);
  const config = loadConfig(process.env);
  const configFile = await openConfigFile(config);
  const workers = countWorkers(config.server.workers);
  if (workers > 1) {
    const { superviseWorkers } = await import('./workers/supervise.ts');
    return superviseWorkers(config, {
      workers,
      envFile,
      configFile,
    });
  }
  const { catalogFile } = config.server;
  const catalog = catalogFile === undefined ? undefined : await loadCatalog(catalogFile);
  // Loaded here: the main process of several workers serves nothing itself.
  const { serve } = await import('./serve.ts');
  await serve(config, { catalog, envFile, configFile });
}
