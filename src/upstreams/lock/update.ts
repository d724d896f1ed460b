// §18.7: the lock file as `postern lock` writes it.
import type { UpstreamConfig } from '../config/upstream-config.ts';
import { knowsUsers } from '../credentials/server-credentials.ts';
import { mergeServers } from './compare.ts';
import { EMPTY_LOCK_FILE, type LockedServer, type LockFile } from './lock-file.ts';

export interface FoundServer {
  readonly config: UpstreamConfig;
  /** Undefined where it was not read: it needs a user and none was given, or it could not be read. */
  readonly server: LockedServer | undefined;
  /** Why it could not be read. */
  readonly problem?: string;
}

/**
 * What was found takes the place of what was approved. Where lists may differ between users and one of them was
 * given, it is added instead; what was not asked stays. Servers that the configuration no longer names go.
 */
export function updateLockFile(
  former: LockFile = EMPTY_LOCK_FILE,
  found: readonly FoundServer[],
  hasUser: boolean,
): LockFile {
  const servers = found.flatMap(({ config, server }) => {
    const known = former.servers.get(config.name);
    const updated =
      server !== undefined && hasUser && knowsUsers(config)
        ? mergeServers(known, server)
        : (server ?? known);
    return updated === undefined ? [] : [[config.name, updated] as const];
  });
  return { servers: new Map(servers) };
}

/** What was reviewed takes the place of what was approved of these servers; nothing of others changes. */
export const approveServers = (
  former: LockFile,
  reviewed: ReadonlyMap<string, LockedServer>,
): LockFile => ({ servers: new Map([...former.servers, ...reviewed]) });
