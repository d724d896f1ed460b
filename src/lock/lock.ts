// §18.7: what a server says of its tools stays as it was approved.

import type { Policy } from '../mcp/calls/policy.ts';
import {
  LOCKED,
  LOCKED_ITEM_KINDS,
  LOCKED_ITEMS,
  type Lock,
  type LockedItemKind,
  type LockedKind,
  type LockVerdict,
} from '../mcp/catalog/approved-items.ts';
import type { UpstreamConfig } from '../mcp/upstream/upstream-config.ts';
import { isObject } from '../platform/json.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import {
  computeFingerprint,
  computeSha256,
  EMPTY_LOCK_FILE,
  type Fingerprint,
  type LockedItems,
  type LockedServer,
  type LockFile,
} from './lock-file.ts';

export function createLock({ servers }: LockFile): Lock {
  const remembered = new WeakMap<object, Map<string, LockVerdict>>();

  function judge(server: string, kind: LockedKind, item: unknown): LockVerdict {
    const approved = findApproved(servers.get(server), kind, item);
    if (approved === undefined) return 'new';
    const sha256 = computeSha256(kind, item);
    return approved.some((one) => one.sha256 === sha256) ? 'approved' : 'changed';
  }

  return {
    check(server, kind, item) {
      if (typeof item !== 'object' || item === null) return judge(server, kind, item);
      const key = `${kind} ${server}`;
      const verdicts = remembered.get(item) ?? new Map<string, LockVerdict>();
      const verdict = verdicts.get(key) ?? judge(server, kind, item);
      remembered.set(item, verdicts.set(key, verdict));
      return verdict;
    },
    knows: (server, kind, name) => findItems(servers.get(server), kind)?.has(name) === true,
    findChanges(server, kind, item) {
      const approved = findApproved(servers.get(server), kind, item);
      const found = computeFingerprint(kind, item);
      return approved === undefined || found === undefined
        ? []
        : findChangedMembers(approved, found);
    },
  };
}

function findApproved(server: LockedServer | undefined, kind: LockedKind, item: unknown) {
  if (kind === 'instructions') return server?.instructions;
  const name = isObject(item) ? item[LOCKED_ITEMS[kind].key] : undefined;
  return typeof name === 'string' ? findItems(server, kind)?.get(name) : undefined;
}

const findItems = (server: LockedServer | undefined, kind: LockedItemKind) =>
  server?.[LOCKED_ITEMS[kind].list];

// §18.7: the lock as a policy: what was not approved is hidden from everybody.

/** Counts what it hides: each time that a list was read. */
export const createLockPolicy = (
  lock: Lock,
  metrics: Pick<Metrics, 'recordLockRefusal'>,
): Policy => ({
  findHidden(server, kind, said) {
    const verdict = lock.check(server, kind, said);
    if (verdict === 'approved') return undefined;
    metrics.recordLockRefusal(server, kind, verdict);
    return LOCKED[verdict];
  },
});

// §18.7: what differs between what was approved and what the servers say now.

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

export const compareServers = (
  approved: LockedServer | undefined,
  found: LockedServer | undefined,
): readonly ServerDifference[] => [
  ...compareFingerprints('instructions', undefined, approved?.instructions, found?.instructions),
  ...LOCKED_ITEM_KINDS.flatMap((kind) => {
    const [before, now] = [findItems(approved, kind), findItems(found, kind)];
    const names = [...new Set([...(before?.keys() ?? []), ...(now?.keys() ?? [])])].sort();
    return names.flatMap((name) =>
      compareFingerprints(kind, name, before?.get(name), now?.get(name)),
    );
  }),
];

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
function findChangedMembers(
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
 * The findings take the place of what was approved. Where they are what one user sees, `isOfUser`, they are added instead; what
 * was not asked stays. Servers that the configuration no longer names go.
 */
export function updateLockFile(
  former: LockFile = EMPTY_LOCK_FILE,
  found: readonly FoundServer[],
  isOfUser: (config: UpstreamConfig) => boolean,
): LockFile {
  const servers = found.flatMap(({ config, server }) => {
    const known = former.servers.get(config.name);
    const updated =
      server !== undefined && isOfUser(config) ? mergeServers(known, server) : (server ?? known);
    return updated === undefined ? [] : [[config.name, updated] as const];
  });
  return { servers: new Map(servers) };
}
