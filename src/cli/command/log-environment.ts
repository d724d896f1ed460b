// What the log says at start of the environment that was read.
import { describeMisspelled, findMisspelledVariables } from '../../config/misspelled.ts';
import type { Log } from '../../platform/log.ts';
import { type EnvFile, listSettings } from './env-file.ts';

export function logEnvironment(log: Log, envFile: EnvFile | undefined): void {
  if (envFile !== undefined) {
    const { path } = envFile;
    log.info('Read .env. Variables that are set in the environment take precedence.', {
      path,
      variables: listSettings(envFile),
    });
  }
  for (const misspelled of findMisspelledVariables(process.env)) {
    const { variable, nearest } = misspelled;
    log.warn(describeMisspelled(misspelled), { variable, nearest });
  }
}
