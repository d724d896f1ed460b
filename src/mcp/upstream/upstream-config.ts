// §18.1: what the configuration file says of the servers behind the gateway, whatever their transports.
import type { NamedPaths } from '../../http/endpoint/endpoint.ts';
import type { Attributes } from '../../telemetry/tracing/tracing.ts';
import type { ConnectionServer } from './connections.ts';

/** The part of the file about servers and the names of what they have; `disabled` servers are left out. */
export interface ServersConfig {
  /** True if the built-in catalogue is served, too. */
  readonly builtIn: boolean;
  /** Between a server's prefix and a name of its own; `__` unless given. */
  readonly separator: string;
  /** Characters of a name of a tool or prompt; longer ones are cut. 32 to 128. */
  readonly maxNameLength: number;
  /** `strict`: letters, digits, `_` and `-` alone; all else becomes `_`. */
  readonly names: 'own' | 'strict';
  /** In the file's order, which decides who wins where names collide. */
  readonly servers: readonly UpstreamConfig[];
}

/** At the end of a name that was cut: hexadecimal digits of its SHA-256, after `_`. */
export const NAME_HASH_CHARACTERS = 8;

/** The number of characters that stay of a name that is longer than `maxNameLength`. */
export const countKeptCharacters = (maxNameLength: number): number =>
  maxNameLength - NAME_HASH_CHARACTERS - 1;

/** One MCP server behind the gateway. Each transport has members of its own beside these. */
export interface UpstreamConfig {
  /** Its transport. Nobody but that compares it: what follows from it is among the facts. */
  readonly kind: string;
  /** Its key in the file, lower-cased: `[a-z][a-z0-9-]{0,31}`, without the separator. */
  readonly name: string;
  /** Before its names; `''` for none. */
  readonly prefix: string;
  /** Milliseconds without progress after which a call ends. */
  readonly timeoutMs: number;
  /** True if the gateway is ready only while the server can be reached. */
  readonly required: boolean;
  /** The era that the gateway uses for it; `auto` is the newest that it supports. */
  readonly era: 'auto' | 'session' | 'stateless';
  /** True if it receives clients' roots. They may replace the folders that it lets its callers read. */
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

export type FindFacts = (config: UpstreamConfig) => UpstreamFacts;

/** Facts of a server that follow from its transport and its credentials. */
export interface UpstreamFacts {
  /**
   * The member of the configuration file that gives each user lists of their own, depending on what their client can be asked;
   * undefined if all users have the same lists. With `auth` the server learns who calls; with `isolation` each caller has processes
   * of their own, even without a user.
   */
  readonly personalBy: 'auth' | 'isolation' | undefined;
  /** True if it answers nobody without a user's token: the gateway itself has no credentials there. */
  readonly needsUser: boolean;
  /** §24: as far as connections to it concern it; undefined where users do not log in at it. */
  readonly connection: ConnectionServer | undefined;
  /** True if it can tell a client's session of the server alone what it logs outside of calls. */
  readonly hasSessionStream: boolean;
  /** §21.2: where it is, on spans. */
  readonly attributes: Attributes;
}

// The configuration file in effect, as seen by features that otherwise have nothing to do with its servers.

/** Asked each time: another file may take its place. */
export interface ServedFile extends NamedPaths {
  /** In the file's order: servers at which users log in themselves (§24). */
  listConnectionServers(): readonly ConnectionServer[];
  /** The claims that rules ask for: without them nobody knows what a user may. */
  listNamedClaims(): readonly string[];
}

// §18.1: names of servers, which stand in URLs and before names of tools. Views have names of the same form.

const NAME = /^[a-z][a-z0-9-]{0,31}$/;
const MAX_LENGTH = 32;

/** §32: `/mcp/server-card` is where MCP has the gateway's own server card. */
export const SERVER_CARD_PATH_NAME = 'server-card';

export const describeTakenName = (what: 'server' | 'view'): string =>
  `A ${what} cannot be called ${SERVER_CARD_PATH_NAME}: /mcp/${SERVER_CARD_PATH_NAME} is where clients look for the gateway’s own server card. Rename it.`;

/** The same name always becomes the same. Undefined where nothing of it can stand in one. */
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
