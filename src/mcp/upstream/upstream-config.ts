// §18.1: what the configuration file says of the servers behind the gateway.
import type { UpstreamAuth } from '../../servers/credentials/credentials.ts';
import type { CommonUpstreamConfig } from './common-config.ts';

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

/** One MCP server behind the gateway. */
export type UpstreamConfig = HttpUpstreamConfig | StdioUpstreamConfig;

export interface HttpUpstreamConfig extends CommonUpstreamConfig {
  readonly kind: 'http';
  readonly url: string;
  /** `sse` is the transport of 2024-11-05. */
  readonly transport: 'streamable-http' | 'sse';
  /** Sent with each request; names in lower case. Secrets. */
  readonly headers: Readonly<Record<string, string>>;
  /** PEM of the authorities that may have signed its certificate, in place of the system's. */
  readonly ca: string | undefined;
  /** True if cookies that it sets in a session are sent back in it. */
  readonly cookies: boolean;
  /** Tells it who calls (§18.6). */
  readonly auth: UpstreamAuth;
}

export interface StdioUpstreamConfig extends CommonUpstreamConfig {
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
