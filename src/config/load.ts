import { freezeDeep } from '../platform/json.ts';
import { type Config, readConfig } from './config.ts';
import { findProblems } from './find-problems.ts';
import { describeMisspelled, findMisspelledVariables } from './misspelled.ts';
import { ConfigError, formatProblem } from './problem.ts';
import { createReader, type Env } from './setting.ts';

/**
 * Reads the settings from environment variables; an empty one counts as unset, as compose files pass them.
 *
 * @throws ConfigError with every problem at once.
 */
export function loadConfig(env: Env): Config {
  const read = createReader(env);
  const problems = findProblems(read, env);
  if (problems.length > 0) {
    // The one that was misspelled may be the one that is missing.
    throw new ConfigError([
      ...problems.map(formatProblem),
      ...findMisspelledVariables(env).map(describeMisspelled),
    ]);
  }
  return freezeDeep(readConfig(read, env));
}
