// Why a start is refused by its settings and its configuration file, without a process: `postern start` reads both so.
import { StartError } from '../../../src/cli/command-line/errors.ts';
import { openConfigFile } from '../../../src/cli/setup/config-file.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { ConfigError } from '../../../src/config/problem.ts';
import type { Env } from './process.ts';

/**
 * The lines that the start would print below its heading.
 * @throws Error when it would go on.
 */
export async function readRefusal(env: Env): Promise<readonly string[]> {
  try {
    await openConfigFile(loadConfig(env));
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    if (error instanceof StartError) return error.lines;
    throw error;
  }
  throw new Error('Nothing is wrong with the settings and the configuration file.');
}
