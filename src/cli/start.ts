import { loadConfig } from '../core/config/load.ts';
import { loadCatalog } from './catalog-file/load-catalog.ts';
import type { Options } from './command-line.ts';
import { prepareEnvironment } from './env-file.ts';
import { serve } from './serve.ts';

/** `postern start`: the service, configured by environment variables. */
export async function start(options: Options): Promise<void> {
  const envFile = prepareEnvironment(options);
  const config = loadConfig(process.env);
  const catalog = options.catalog === undefined ? undefined : await loadCatalog(options.catalog);
  await serve(config, { catalog, envFile });
}
