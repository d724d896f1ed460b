// §18.1: what the configuration file says of a server, whatever its transport.

export interface CommonUpstreamConfig {
  /** Its key in the file, lower-cased: `[a-z][a-z0-9-]{0,31}`, without the separator. */
  readonly name: string;
  /** Before its names; `''` for none. */
  readonly prefix: string;
  /** Milliseconds without progress after which a call ends. */
  readonly timeoutMs: number;
  /** True if the gateway is ready only while the server can be reached. */
  readonly required: boolean;
  /** Which era it is spoken to in; `auto` is the newest that it speaks. */
  readonly era: 'auto' | 'session' | 'stateless';
  /** True if it is told clients' roots; they may replace what it lets its callers read. */
  readonly roots: boolean;
  readonly tools: ToolSelection;
}

/** Which tools of a server are served. Globs over its own names; case counts. */
export interface ToolSelection {
  /** `['*']` unless given. */
  readonly include: readonly string[];
  readonly exclude: readonly string[];
  /** Descriptions in place of the server's, by the tool's own name. */
  readonly describe: Readonly<Record<string, string>>;
}
