// §18.2, §25.1: the paths below /mcp.

/** What there is at `/mcp/<name>`: servers, and views (§25.1). */
export interface NamedPaths {
  has(name: string): boolean;
  /** What people see it called, where the configuration says that. */
  getTitle(name: string): string | undefined;
}
