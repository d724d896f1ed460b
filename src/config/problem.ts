// Mistakes in what operators write: the settings, the configuration file, its rules and servers.
import type { Read, Setting } from './setting.ts';

export interface Problem {
  /** Its place, such as `mcp.json:12: mcpServers.wiki.url`; without one the message says it. */
  readonly place?: string;
  /** The mistake, and what is allowed: one sentence or more. */
  readonly message: string;
}

export const formatProblem = ({ place, message }: Problem): string =>
  place === undefined ? message : `${place}: ${message}`;

/** True if no variable says it: a value that is not allowed is a complaint of its own, and its setting is not missing as well. */
export type IsMissing = (setting: Setting<unknown>) => boolean;

/** One sentence about settings that do not go together, or nothing where nothing is wrong. */
export type FindProblem = (read: Read, isMissing: IsMissing) => string | false | undefined;

/** All that is wrong with the settings, one sentence each. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.problems = problems;
  }
}
