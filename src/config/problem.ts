// Problems in the operator's input: settings, the configuration file, its rules and servers.

export interface Problem {
  /** The position, such as `mcp.json:12: mcpServers.wiki.url`. If it is missing, the message names the position. */
  readonly place?: string;
  /** The problem and the allowed values, in one or more sentences. */
  readonly message: string;
}

export const formatProblem = ({ place, message }: Problem): string =>
  place === undefined ? message : `${place}: ${message}`;

/** All problems with the settings, one sentence each. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.problems = problems;
  }
}
