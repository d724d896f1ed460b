// Of which files postern dev is made, as the command line, the environment and .env say at this moment.
import { dirname, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findSetting } from '../command/env-file.ts';
import { UsageError } from '../command/errors.ts';
import { SOURCE_FOLDER } from '../command/invocation.ts';
import type { StartOptions } from '../serve/start.ts';
import { findLockPath } from '../setup/lock-file-on-disk.ts';

export interface WatchOptions extends Pick<StartOptions, 'catalog' | 'config'> {
  /** Also the sources, in a checkout that serves no catalogue of the user's. */
  readonly watch: boolean | undefined;
}

export interface WatchedFiles {
  /** With code, and all below it; undefined where only what is built in is served. */
  readonly folder: string | undefined;
  /** Whether a change of code has to be built. */
  readonly isCheckout: boolean;
  readonly envFile: string;
  /** The configuration file and its lock, which postern dev follows itself while it runs. */
  readonly configFiles: readonly string[];
}

/** @throws UsageError when `--watch` has nothing to watch. */
export function findWatchedFiles(options: WatchOptions): WatchedFiles {
  const catalog = options.catalog ?? findSetting('POSTERN_CATALOG');
  const config = options.config ?? findSetting('POSTERN_CONFIG');
  const isCheckout = catalog === undefined && options.watch === true;
  return {
    folder: catalog === undefined ? findSources(isCheckout) : dirname(resolve(catalog)),
    isCheckout,
    envFile: resolve('.env'),
    configFiles: config === undefined ? [] : [resolve(config), findLockPath(resolve(config))],
  };
}

function findSources(isWanted: boolean): string | undefined {
  if (!isWanted) return undefined;
  if (SOURCE_FOLDER !== undefined) return resolve(fileURLToPath(SOURCE_FOLDER));
  throw new UsageError('--watch needs --catalog FILE: it watches the folder of that file.');
}

/** For the user. */
export function describeWatchedFiles({ folder, envFile, configFiles }: WatchedFiles): string {
  const [configFile] = configFiles;
  const code = folder === undefined ? [] : [`code in ${describePath(folder) || 'this folder'}`];
  const files = configFile === undefined ? [envFile] : [configFile, envFile];
  return new Intl.ListFormat('en-GB').format([...code, ...files.map(describePath)]);
}

export const describePath = (path: string): string => relative(process.cwd(), path);
