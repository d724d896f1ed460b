// What is wrong with what operators write: the settings, the configuration file, its rules and servers.

export interface Problem {
  /** Where it stands, such as `mcp.json:12: mcpServers.wiki.url`; without one the message says it. */
  readonly place?: string;
  /** What is wrong, and what is allowed: one sentence or more. */
  readonly message: string;
}

export const formatProblem = ({ place, message }: Problem): string =>
  place === undefined ? message : `${place}: ${message}`;
