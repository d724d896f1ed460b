// §25.1: what the configuration file says of views.

export interface ViewsConfig {
  /** In the file's order; none unless given. */
  readonly views?: readonly ViewConfig[];
}

/** A curated set of what `/mcp` serves, at a path of its own. Names are those that clients of `/mcp` see. */
export interface ViewConfig {
  /** `[a-z][a-z0-9-]{0,31}`; no server of the file has it. */
  readonly name: string;
  /** For people; the name unless given. */
  readonly title: string;
  /** In place of those of the servers. */
  readonly instructions: string | undefined;
  /** Undefined for all, and the built-in catalogue (`BUILT_IN` here). */
  readonly servers: readonly string[] | undefined;
  /** Globs; undefined for all of these servers. Their order is that of the lists. */
  readonly tools: readonly string[] | undefined;
  readonly prompts: readonly string[] | undefined;
  /** Globs over URIs, decoded, and over templates. */
  readonly resources: readonly string[] | undefined;
  /** Descriptions in place of the servers', by the tool's name. */
  readonly describe: Readonly<Record<string, string>>;
  /** §25.3: whether tools are found by searching, beside those that are pinned. */
  readonly search: boolean;
  /** Globs over the tools that are listed beside the search. */
  readonly pinned: readonly string[];
  /** Where it stands, for messages: `postern.yaml:12, views.research`. */
  readonly place: string;
}
