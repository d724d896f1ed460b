// Mistakes in what operators write: the settings, the configuration file, its rules and servers.

export interface Problem {
  /** Its place, such as `mcp.json:12: mcpServers.wiki.url`; without one the message says it. */
  readonly place?: string;
  /** The mistake, and what is allowed: one sentence or more. */
  readonly message: string;
}

export const formatProblem = ({ place, message }: Problem): string =>
  place === undefined ? message : `${place}: ${message}`;

/** All that is wrong with the settings, one sentence each. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.problems = problems;
  }
}
