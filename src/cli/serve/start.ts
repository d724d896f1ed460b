import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { loadConfig } from '../../config/load.ts';
import { prepareEnvironment } from '../command-line/env-file.ts';
import type { Texts } from '../command-line/invocation.ts';
import { endWithNpx } from '../command-line/process-end.ts';
import { readIfPresent } from '../command-line/read-input.ts';
import { openConfigFile } from '../setup/config-file.ts';
import { loadCatalog } from '../setup/load-catalog.ts';

/** `postern start`: starts the service, configured by environment variables. */
export async function start(options: Texts<'catalog' | 'config' | 'port'>): Promise<void> {
  endWithNpx();
  const envFile = prepareEnvironment(options, process.env);
  const config = loadConfig(process.env);
  const configFile = await openConfigFile(config);
  const workers = countWorkers(config.server.workers);
  if (workers > 1) {
    const { superviseWorkers } = await import('./workers/supervise.ts');
    return superviseWorkers(config, workers, envFile, configFile);
  }
  const catalog = await loadCatalog(config.server.catalogFile);
  // Imported here: the main process of several workers does not serve.
  const { serve } = await import('./serve.ts');
  await serve(config, catalog, envFile, { configFile });
}

/** `auto` means one worker per CPU available to this process. */
export const countWorkers = (workers: number | 'auto'): number =>
  workers === 'auto' ? Math.min(availableParallelism(), countQuotaCpus('/')) : workers;

/**
 * Counts the whole CPUs that the control group's CPU limit allows, at least one: a container with `--cpus=2` on a machine with 64
 * has two. Node.js 20 ignores this limit, newer versions respect it.
 *
 * `root` is the root of the system's files; tests pass their own.
 */
export function countQuotaCpus(root: string): number {
  // Control groups version 2, the only version with this line.
  const [, group = '/'] = /^0::(\/.*)$/m.exec(readIfPresent(join(root, 'proc/self/cgroup'))) ?? [];
  const mount = join(root, 'sys/fs/cgroup');
  let least = Number.POSITIVE_INFINITY;
  // The limits of all parent groups apply, too.
  for (let path = join(mount, group); path.startsWith(mount); path = dirname(path)) {
    const [quota = '', period = ''] = readIfPresent(join(path, 'cpu.max')).split(' ');
    // Without a limit, the value is "max".
    if (/^\d+$/.test(quota)) least = Math.min(least, Number(quota) / Number(period));
  }
  return Math.max(1, Math.floor(least));
}
