// §18.1: the configuration file, parsed: which MCP servers stand behind the gateway, and who may use what.

/** What the file says; `disabled` servers are left out. */
export interface GatewayFile {
  /** Whether the built-in catalogue is served, too. */
  readonly builtIn: boolean;
  /** Between a server's prefix and a name of its own; `__` unless given. */
  readonly separator: string;
  /** Characters of a name of a tool or prompt; longer ones are cut. 32 to 128. */
  readonly maxNameLength: number;
  /** `strict`: letters, digits, `_` and `-` alone; all else becomes `_`. */
  readonly names: 'own' | 'strict';
  /** In the file's order, which decides who wins where names collide. */
  readonly servers: readonly UpstreamConfig[];
  /** Without any, everybody may use everything. */
  readonly rules: readonly RuleConfig[];
  /** `"rules": "everyone"`: that there are none is meant. */
  readonly meansNoRules: boolean;
}

/** At the end of a name that was cut: hexadecimal digits of its SHA-256, after `_`. */
export const NAME_HASH_CHARACTERS = 8;

/** What stays of a name that is longer than `maxNameLength`. */
export const countKeptCharacters = (maxNameLength: number): number =>
  maxNameLength - NAME_HASH_CHARACTERS - 1;

/** One MCP server behind the gateway. */
export type UpstreamConfig = HttpUpstreamConfig | StdioUpstreamConfig;

interface UpstreamConfigBase {
  /** Its key in the file, lower-cased: `[a-z][a-z0-9-]{0,31}`, without the separator. */
  readonly name: string;
  /** Before its names; `''` for none. */
  readonly prefix: string;
  /** Milliseconds without progress after which a call ends. */
  readonly timeoutMs: number;
  /** Whether the gateway is ready only while the server can be reached. */
  readonly required: boolean;
  /** Which era it is spoken to in; `auto` is the newest that it speaks. */
  readonly era: 'auto' | 'session' | 'stateless';
  /** Whether it is told clients' roots; they may replace what it lets its callers read. */
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

export interface HttpUpstreamConfig extends UpstreamConfigBase {
  readonly kind: 'http';
  readonly url: string;
  /** `sse` is the transport of 2024-11-05. */
  readonly transport: 'streamable-http' | 'sse';
  /** Sent with each request; names in lower case. Secrets. */
  readonly headers: Readonly<Record<string, string>>;
  /** PEM of the authorities that may have signed its certificate, in place of the system's. */
  readonly ca: string | undefined;
  readonly auth: UpstreamAuth;
}

/** What tells the server who calls (§18.6). */
export type UpstreamAuth =
  | { readonly type: 'none' }
  | { readonly type: 'identity' }
  | { readonly type: 'token-exchange'; readonly audience: string; readonly scope?: string }
  | { readonly type: 'forward'; readonly audience: string };

export interface StdioUpstreamConfig extends UpstreamConfigBase {
  readonly kind: 'stdio';
  readonly command: string;
  readonly args: readonly string[];
  /** Parts of `args` that are never shown: what variables bring there, and what looks like a secret. */
  readonly secretArguments: readonly string[];
  /** Beside PATH, HOME, USER, LANG and TMPDIR. Secrets. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string | undefined;
  /** The user of the system that it runs as; undefined for the gateway's own. */
  readonly runAs: ProgramUser | undefined;
  /** For whom there is a process of its own: for this gateway, for each user, or for each session. */
  readonly isolation: 'shared' | 'user' | 'session';
  /** At most so many at once, where there is more than one. */
  readonly maxProcesses: number;
  /** After so long without a call a user's process ends. */
  readonly idleSeconds: number;
}

/** A user of the system, looked up once, when the file is loaded: from then on its numbers count. */
export interface ProgramUser {
  readonly uid: number;
  readonly gid: number;
  /** Undefined where the system has no entry for the numbers. */
  readonly name: string | undefined;
  readonly home: string | undefined;
}

/** §18.5: what some callers may use. Rules only add up. */
export interface RuleConfig {
  /** Whom it is about; all that is named must hold. */
  readonly who: 'everyone' | RuleSubject;
  /** A CEL expression that must hold, too. */
  readonly when: string | undefined;
  /** Globs over names as clients see them: of tools, or after `prompt:` or `resource:`. */
  readonly may: readonly string[];
  /** Where it stands, for messages: `postern.yaml:12, rules[0]`. */
  readonly place: string;
}

export interface RuleSubject {
  /** One of them is enough, as in each of these lists. */
  readonly groups?: readonly string[];
  readonly scopes?: readonly string[];
  /** A claim's exact value, or a list of those that it may have. */
  readonly claims?: Readonly<Record<string, unknown>>;
  /** Globs over OAuth client IDs. */
  readonly clients?: readonly string[];
}

/** Without a file: nothing stands behind the gateway. */
export const NO_GATEWAY_FILE: GatewayFile = {
  builtIn: true,
  separator: '__',
  maxNameLength: 64,
  names: 'own',
  servers: [],
  rules: [],
  meansNoRules: false,
};
