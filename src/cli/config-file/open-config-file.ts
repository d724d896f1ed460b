// --config FILE, POSTERN_CONFIG: the configuration file of a process that serves.
import type { Config } from '../../core/config/config.ts';
import type { GatewayFile } from '../../core/gateway-file/gateway-file.ts';
import type { Log } from '../../core/log.ts';
import { StartError } from '../start-error.ts';
import type { FollowActions } from './follow-config-file.ts';
import { summarizeFile } from './load-file.ts';

export interface ConfigFile {
  readonly path: string;
  readonly file: GatewayFile;
  /** For the log. */
  readonly warnings: readonly string[];
  /**
   * Loads the file anew when it changes, and at SIGHUP, until the result is called. A file with problems
   * is not loaded: the log says what is wrong with it.
   */
  follow(actions: FollowActions): () => void;
}

/**
 * Undefined where no file is named.
 *
 * @throws StartError with all that is wrong with the file.
 */
export async function openConfigFile(config: Config): Promise<ConfigFile | undefined> {
  const { configFile: path } = config.server;
  if (path === undefined) return undefined;
  // The parsers are loaded only where there is something to parse.
  const { readConfigFile } = await import('./read-config-file.ts');
  const { computeStamp } = await import('./watch-file.ts');
  const { followConfigFile } = await import('./follow-config-file.ts');
  const stamp = computeStamp(path);
  const read = () => readConfigFile(path, config);
  const parsed = await read();
  if (parsed.kind === 'problems') throw new StartError(parsed.problems);
  const { file, warnings } = parsed;
  return {
    path,
    file,
    warnings,
    follow: (actions) => followConfigFile({ path, stamp, read, ...actions }),
  };
}

/** What the log says of the file at start. */
export function logConfigFile(log: Log, { path, file, warnings }: ConfigFile): void {
  for (const warning of warnings) log.warn(warning);
  log.info('Read the configuration file.', { path, ...summarizeFile(file) });
}
