// The configuration file that a command is about.
import type { GatewayFile } from '../../config/file/gateway-file.ts';
import type { Env } from '../../config/read-env.ts';
import { CommandError, UsageError } from '../command/errors.ts';
import { readConfigFile } from './config-file/read-config-file.ts';
import { loadSettings } from './load-settings.ts';

/** @throws UsageError or CommandError */
export async function readConfiguration(
  command: string,
  env: Env,
): Promise<{
  readonly path: string;
  readonly file: GatewayFile;
}> {
  const config = loadSettings(env);
  const { configFile: path } = config.server;
  if (path === undefined) {
    throw new UsageError(
      `postern ${command} needs the configuration file, for example --config mcp.json.`,
    );
  }
  const parsed = await readConfigFile(path, config, env);
  if (parsed.kind === 'problems') {
    throw new CommandError('The configuration file has problems:', parsed.problems);
  }
  return { path, file: parsed.file };
}
