// §18.1: what the configuration file says about the servers behind the gateway, whatever their transport.
import type { NamedPaths } from '../../http/endpoint/endpoint.ts';
import type { Attributes } from '../../telemetry/tracing/tracing.ts';
import type { ConnectionServer } from './connections.ts';

/** The part of the file about servers and the names of what they have; `disabled` servers are left out. */
export interface ServersConfig {
  /** True if the built-in catalogue is also served. */
  readonly builtIn: boolean;
  /** Separates a server's prefix from its own names; `__` by default. */
  readonly separator: string;
  /** Maximum length of the name of a tool or prompt, in characters, from 32 to 128; longer names are cut. */
  readonly maxNameLength: number;
  /** `strict`: only letters, digits, `_` and `-`; anything else becomes `_`. */
  readonly names: 'own' | 'strict';
  /** In the file's order, which determines precedence if names collide. */
  readonly servers: readonly UpstreamConfig[];
}

/** Appended to a truncated name after `_`: hexadecimal digits of its SHA-256. */
export const NAME_HASH_CHARACTERS = 8;

/** The number of characters kept of a name that is longer than `maxNameLength`. */
export const countKeptCharacters = (maxNameLength: number): number =>
  maxNameLength - NAME_HASH_CHARACTERS - 1;

/** One MCP server behind the gateway. Each transport adds its own members. */
export interface UpstreamConfig {
  /** Its transport. Only the transport itself compares it: everything that follows from it is in the facts. */
  readonly kind: string;
  /** Its key in the file, lower-cased: `[a-z][a-z0-9-]{0,31}`, without the separator. */
  readonly name: string;
  /** Prepended to its names; `''` for none. */
  readonly prefix: string;
  /** Milliseconds without progress after which a call ends. */
  readonly timeoutMs: number;
  /** True if the gateway is ready only while the server can be reached. */
  readonly required: boolean;
  /** The era that the gateway uses for it; `auto` is the newest that the server supports. */
  readonly era: 'auto' | 'session' | 'stateless';
  /** True if it receives clients' roots, which may replace the folders that it lets its callers read. */
  readonly roots: boolean;
  readonly tools: ToolSelection;
}

/** Selects which of a server's tools are served, by case-sensitive globs for the server's own tool names. */
export interface ToolSelection {
  /** `['*']` by default. */
  readonly include: readonly string[];
  readonly exclude: readonly string[];
  /** Descriptions that replace the server's, by the tool's own name. */
  readonly describe: Readonly<Record<string, string>>;
}

export type FindFacts = (config: UpstreamConfig) => UpstreamFacts;

/** Facts of a server that follow from its transport and its credentials. */
export interface UpstreamFacts {
  /**
   * The member of the configuration file that gives each user their own lists, depending on what their client can be asked;
   * undefined if all users have the same lists. With `auth`, the server learns who is calling; with `isolation`, each caller has
   * separate processes, even without a user.
   */
  readonly personalBy: 'auth' | 'isolation' | undefined;
  /** True if it only responds to requests with a user's token: the gateway itself has no credentials there. */
  readonly needsUser: boolean;
  /** §24: the part that concerns connections to it; undefined if users do not log in to it. */
  readonly connection: ConnectionServer | undefined;
  /** True if it can send log messages to a single client's session even outside a call. */
  readonly hasSessionStream: boolean;
  /** §21.2: its address, as recorded on spans. */
  readonly attributes: Attributes;
}

// The configuration file in effect, as seen by features that otherwise have nothing to do with its servers.

/** Looked up each time, since the file may be replaced. */
export interface ServedFile extends NamedPaths {
  /** In the file's order: servers that users log in to themselves (§24). */
  listConnectionServers(): readonly ConnectionServer[];
  /** The claims that rules use: without them it is unknown what a user may do. */
  listNamedClaims(): readonly string[];
}

// §18.1: names of servers, which are used in URLs and as prefixes of tool names. Views have names of the same form.

const NAME = /^[a-z][a-z0-9-]{0,31}$/;
const MAX_LENGTH = 32;

/** §32: MCP reserves `/mcp/server-card` for the gateway's own server card. */
export const SERVER_CARD_PATH_NAME = 'server-card';

export const describeTakenName = (what: 'server' | 'view'): string =>
  `A ${what} cannot be called ${SERVER_CARD_PATH_NAME}: /mcp/${SERVER_CARD_PATH_NAME} is where clients look for the gateway’s own server card. Rename it.`;

/** The same name always gives the same result. Undefined if no part of it can be used. */
export function deriveServerName(name: string): string | undefined {
  const lowerName = name.toLowerCase();
  if (NAME.test(lowerName)) return lowerName;
  const fitting = name
    .normalize('NFD')
    .replace(/\p{M}+/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+/, '')
    .replace(/^(?=\d)/, 'mcp-')
    .slice(0, MAX_LENGTH)
    .replace(/-+$/, '');
  return NAME.test(fitting) ? fitting : undefined;
}
