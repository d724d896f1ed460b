// §18.7: what differs between what was approved and what the servers say now.

import type { UpstreamConfig } from '../mcp/upstream/upstream-config.ts';
import { knowsUsers } from '../servers/transport/transports.ts';
import {
  EMPTY_LOCK_FILE,
  type Fingerprint,
  type LockedItems,
  type LockedKind,
  type LockedServer,
  type LockFile,
} from './lock-file.ts';

export interface LockDifference {
  readonly server: string;
  readonly kind: LockedKind;
  /** Name of the tool or prompt, URI of the skill; undefined for instructions. */
  readonly name: string | undefined;
  readonly change: 'added' | 'removed' | 'changed';
  /** The members that changed, such as `description`. */
  readonly members: readonly string[];
}

/**
 * In the order of the file. `isPartial` names the servers of which only one user's view was found: what is missing
 * there may be another user's.
 */
export function findDifferences(
  approved: LockFile,
  found: LockFile,
  isPartial: (server: string) => boolean,
): readonly LockDifference[] {
  const names = [...new Set([...approved.servers.keys(), ...found.servers.keys()])].sort();
  return names.flatMap((server) =>
    compareServers(approved.servers.get(server), found.servers.get(server))
      .filter(({ change }) => change !== 'removed' || !isPartial(server))
      .map((difference) => ({ server, ...difference })),
  );
}

type ServerDifference = Omit<LockDifference, 'server'>;

const compareServers = (
  approved: LockedServer | undefined,
  found: LockedServer | undefined,
): readonly ServerDifference[] => [
  ...compareFingerprints('instructions', undefined, approved?.instructions, found?.instructions),
  ...compareItems('prompt', approved?.prompts, found?.prompts),
  ...compareItems('skill', approved?.skills, found?.skills),
  ...compareItems('tool', approved?.tools, found?.tools),
];

function compareItems(
  kind: LockedKind,
  approved: LockedItems = new Map(),
  found: LockedItems = new Map(),
): readonly ServerDifference[] {
  const names = [...new Set([...approved.keys(), ...found.keys()])].sort();
  return names.flatMap((name) =>
    compareFingerprints(kind, name, approved.get(name), found.get(name)),
  );
}

function compareFingerprints(
  kind: LockedKind,
  name: string | undefined,
  approved: readonly Fingerprint[] | undefined,
  found: readonly Fingerprint[] | undefined,
): readonly ServerDifference[] {
  if (found === undefined) {
    return approved === undefined ? [] : [{ kind, name, change: 'removed', members: [] }];
  }
  if (approved === undefined) return [{ kind, name, change: 'added', members: [] }];
  return found
    .filter(({ sha256 }) => approved.every((one) => one.sha256 !== sha256))
    .map((one) => ({ kind, name, change: 'changed', members: findChangedMembers(approved, one) }));
}

/** Compared with the approved one that is most like it. */
export function findChangedMembers(
  approved: readonly Fingerprint[],
  { parts }: Fingerprint,
): readonly string[] {
  const candidates = approved.map((one) => {
    const names = [...new Set([...Object.keys(one.parts), ...Object.keys(parts)])].sort();
    return names.filter((name) => one.parts[name] !== parts[name]);
  });
  const [nearest = []] = candidates.sort((a, b) => a.length - b.length);
  return nearest;
}

/** `former` and all of `added`: another user may see what this one does not. */
export function mergeServers(former: LockedServer | undefined, added: LockedServer): LockedServer {
  if (former === undefined) return added;
  return {
    instructions: mergeFingerprints(former.instructions, added.instructions),
    prompts: mergeItems(former.prompts, added.prompts),
    skills: mergeItems(former.skills, added.skills),
    tools: mergeItems(former.tools, added.tools),
  };
}

const mergeItems = (former: LockedItems, added: LockedItems): LockedItems =>
  new Map([
    ...former,
    ...[...added].map(
      ([name, fingerprints]) =>
        [name, mergeFingerprints(former.get(name), fingerprints) ?? []] as const,
    ),
  ]);

function mergeFingerprints(
  former: readonly Fingerprint[] | undefined,
  added: readonly Fingerprint[] | undefined,
): readonly Fingerprint[] | undefined {
  if (former === undefined || added === undefined) return former ?? added;
  const isNew = ({ sha256 }: Fingerprint) => former.every((one) => one.sha256 !== sha256);
  return [...former, ...added.filter(isNew)];
}

// §18.7: the lock file as `postern lock` writes it.

export interface FoundServer {
  readonly config: UpstreamConfig;
  /** Undefined where it was not read: it needs a user and none was given, or it could not be read. */
  readonly server: LockedServer | undefined;
  /** Why it could not be read. */
  readonly problem?: string;
}

/**
 * The findings take the place of what was approved. Where lists may differ between users and one of them was
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

/** The reviews take the place of what was approved of these servers; nothing of others changes. */
export const approveServers = (
  former: LockFile,
  reviewed: ReadonlyMap<string, LockedServer>,
): LockFile => ({ servers: new Map([...former.servers, ...reviewed]) });
