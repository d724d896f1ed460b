// §18.7: the lock: compares servers with what was approved, as a policy, for `postern lock`, and for operators.

import type { Policy } from '../mcp/calls/policy.ts';
import {
  type ApprovableServer,
  LOCKED,
  LOCKED_ITEM_KINDS,
  LOCKED_ITEMS,
  type Lock,
  type LockedItemKind,
  type LockedKind,
  type LockVerdict,
  type ServerContent,
} from '../mcp/catalog/approved-items.ts';
import { UpstreamError } from '../mcp/upstream/upstream.ts';
import type { UpstreamConfig } from '../mcp/upstream/upstream-config.ts';
import type { Clock, Turns } from '../platform/clock.ts';
import { hashSha256 } from '../platform/ids.ts';
import { isObject, toCanonicalJson } from '../platform/json.ts';
import {
  computeFingerprint,
  computeSha256,
  EMPTY_LOCK_FILE,
  type Fingerprint,
  indexItems,
  type LockedItems,
  type LockedServer,
  type LockFile,
  selectMembers,
  toLockedServer,
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

// §18.7: the lock as a policy: unapproved items are hidden from all callers.

/** `onHidden` is called for each hidden item whenever a list is read. */
export const createLockPolicy = (
  lock: Lock,
  onHidden: (
    server: string,
    kind: LockedKind,
    item: unknown,
    verdict: Exclude<LockVerdict, 'approved'>,
  ) => void = () => {},
): Policy => ({
  findHidden(server, kind, said) {
    const verdict = lock.check(server, kind, said);
    if (verdict === 'approved') return undefined;
    onHidden(server, kind, said, verdict);
    return LOCKED[verdict];
  },
});

// §18.7: differences between the approved and the current state of servers.

export interface LockDifference extends Omit<LockedChange, 'change'> {
  readonly change: 'added' | 'removed' | 'changed';
  /** Members that changed, such as `description`. */
  readonly members: readonly string[];
}

/**
 * In the order of the file. `isPartial` names servers whose findings are one user's view: other users may see what is missing
 * there.
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

const compareServers = (approved: LockedServer | undefined, found: LockedServer | undefined) => [
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
  if (found === undefined)
    return approved === undefined ? [] : [{ kind, name, change: 'removed', members: [] }];
  if (approved === undefined) return [{ kind, name, change: 'added', members: [] }];
  return found
    .filter(({ sha256 }) => approved.every((one) => one.sha256 !== sha256))
    .map((one) => ({ kind, name, change: 'changed', members: findChangedMembers(approved, one) }));
}

/** Compares with the approved form that is most similar. */
function findChangedMembers(approved: readonly Fingerprint[], { parts }: Fingerprint) {
  const candidates = approved.map((one) => {
    const names = [...new Set([...Object.keys(one.parts), ...Object.keys(parts)])].sort();
    return names.filter((name) => one.parts[name] !== parts[name]);
  });
  const [nearest = []] = candidates.sort((a, b) => a.length - b.length);
  return nearest;
}

/** Merges `former` and `added`: another user may see what this one does not. */
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
) {
  if (former === undefined || added === undefined) return former ?? added;
  const isNew = ({ sha256 }: Fingerprint) => former.every((one) => one.sha256 !== sha256);
  return [...former, ...added.filter(isNew)];
}

// §18.7: the lock file as `postern lock` writes it.

export interface FoundServer {
  readonly config: UpstreamConfig;
  /** Undefined if the server was not read: it needs a user and none was given, or it could not be read. */
  readonly server: LockedServer | undefined;
  /** Why it could not be read. */
  readonly problem?: string;
}

/**
 * The findings replace what was approved. If they are one user's view (`isOfUser`), they are added instead. Servers that were not
 * asked stay; servers that the configuration no longer names are removed.
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

// §22.4, §22.6: differences for operators: what the lock hides from clients, and what approving a server would change.

/** A part of a server that differs from what was approved. */
export interface LockedChange {
  readonly server: string;
  readonly kind: LockedKind;
  /** The server's own name for the tool or prompt, URI of the skill; undefined for instructions. */
  readonly name: string | undefined;
  readonly change: 'new' | 'changed' | 'gone';
}

/** With the current and the approved text. */
export interface ShownDifference extends LockedChange {
  /** True if `before` is known: the lock has only hashes, and this process may never have seen what was approved. */
  readonly isFormerKnown: boolean;
  /** All members of a new item, otherwise those that changed. */
  readonly members: readonly {
    /** Such as `description`. */
    readonly name: string;
    /** The approved text; undefined if there was none, or it is unknown. */
    readonly before?: unknown;
    /** Undefined if the member is gone. */
    readonly now?: unknown;
  }[];
}

/** Differences from `skip` on, `limit` at most, by the last lists of the servers: none is asked. */
export function listLockDifferences(
  servers: Iterable<ApprovableServer>,
  lock: Lock,
  { skip, limit }: { readonly skip: number; readonly limit: number },
) {
  const all = [...servers];
  const byServer = all
    .filter(({ isPersonal }) => !isPersonal)
    .map((server) => ({ server: server.name, hidden: findHidden(server, lock) }))
    .filter(({ hidden }) => hidden.length > 0);
  const differences = byServer.flatMap(({ hidden }) => hidden);
  return {
    total: differences.length,
    servers: byServer.map(({ server, hidden }) => ({ server, total: hidden.length })),
    /** One server after the other. */
    differences: differences.slice(skip, skip + limit).map((one) => describeHidden(one, lock)),
    /** Differs between users, so it is not known here. */
    personal: all.filter(({ isPersonal }) => isPersonal).map(({ name }) => name),
  };
}

/** A current item that is not approved in this form. */
interface Hidden extends LockedChange {
  readonly item: unknown;
  /** The approved form, if this process has seen it. */
  readonly former: unknown;
}

function findHidden(server: ApprovableServer, lock: Lock): readonly Hidden[] {
  const content = server.peek();

  function judge(kind: LockedKind, item: unknown, name?: string, former?: unknown): Hidden[] {
    const change = lock.check(server.name, kind, item);
    return change === 'approved' ? [] : [{ server: server.name, kind, name, change, item, former }];
  }

  return [
    ...(content.instructions === undefined ? [] : judge('instructions', content.instructions)),
    ...LOCKED_ITEM_KINDS.flatMap((kind) => {
      const { list, key } = LOCKED_ITEMS[kind];
      const seen = new Set<string>();
      return content[list].items.flatMap((item) => {
        const name = String(item[key]);
        if (seen.has(name) || !server.isUsable(list, item)) return [];
        seen.add(name);
        return judge(kind, item, name, server.peekApproved(list, name));
      });
    }),
  ];
}

/**
 * Without the approved form, changes are found by the short hashes of the lock. A server can craft text with the same short hash:
 * `isWhole` shows such members, too, since the operator has to see them.
 */
function describeHidden({ item, former, ...hidden }: Hidden, lock: Lock, isWhole = false) {
  const { server, kind, change } = hidden;
  const now = selectMembers(kind, item);
  // The item may have been approved in a different form since.
  const isFormerKnown = former !== undefined && change === 'changed';
  const before = isFormerKnown ? selectMembers(kind, former) : {};
  const all = [...new Set([...Object.keys(before), ...Object.keys(now)])];
  const shown = all.filter((one) => one !== 'name');
  function listChanged() {
    if (isFormerKnown) return shown.filter((one) => !isSame(before[one], now[one]));
    const told = change === 'changed' ? lock.findChanges(server, kind, item) : [];
    return isWhole ? [...new Set([...told, ...shown])] : told;
  }
  const changed = listChanged();
  const names = changed.length > 0 ? changed : shown;
  return {
    ...hidden,
    isFormerKnown,
    members: names.map((one) => ({ name: one, before: before[one], now: now[one] })),
  };
}

function isSame(before: unknown, now: unknown) {
  try {
    return toCanonicalJson(before) === toCanonicalJson(now);
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

// §22.6: the changes that approving a server would make in postern.lock: based on its current response, not its last list.

export interface ServerReview {
  readonly server: string;
  /** Hash of the approved and the current state: a new one means that either has changed. */
  readonly digest: string;
  /** All changes that `postern lock` would make to this server, also those that clients do not see for other reasons. */
  readonly changes: readonly LockedChange[];
  /** The server in the form that would be approved. */
  readonly found: LockedServer;
}

export interface AnsweredServer {
  readonly server: ApprovableServer;
  readonly content: ServerContent;
  readonly found: LockedServer;
}

/** Timeout of the server: an operator waits for the answer. */
const READ_LIMIT_MS = 15_000;

/** @throws UpstreamError */
export async function askServer(server: ApprovableServer, clock: Clock): Promise<AnsweredServer> {
  const ending = new AbortController();
  let cancel = () => {};
  const tooLate = new Promise<never>((_, reject) => {
    cancel = clock.after(READ_LIMIT_MS, () => {
      reject(new UpstreamError('timeout', `it did not answer within ${READ_LIMIT_MS / 1000} s`));
      ending.abort();
    });
  });
  try {
    const content = await Promise.race([server.read(ending.signal), tooLate]);
    return { server, content, found: await toLockedServer(content, clock) };
  } finally {
    cancel();
  }
}

export function reviewServer(
  { server: { name: server }, found }: AnsweredServer,
  { servers }: LockFile,
): ServerReview {
  const approved = servers.get(server);
  return {
    server,
    digest: hashSha256(JSON.stringify([server, ...[approved, found].map(listHashes)])),
    changes: compareServers(approved, found).map(({ kind, name, change }) => ({
      server,
      kind,
      name,
      change: CHANGES[change],
    })),
    found,
  };
}

/** Everything that affects decisions, but less than half of the file: a server may have thousands of tools. */
const listHashes = (server: LockedServer | undefined): unknown =>
  server && [
    server.instructions && sortHashes(server.instructions),
    ...[server.prompts, server.skills, server.tools].map((items) =>
      [...items]
        .map(([name, all]) => [name, ...sortHashes(all)])
        .sort(([a = ''], [b = '']) => (a < b ? -1 : 1)),
    ),
  ];

const sortHashes = (all: readonly Fingerprint[]): readonly string[] =>
  all.map(({ sha256 }) => sha256).sort();

const CHANGES = { added: 'new', changed: 'changed', removed: 'gone' } as const;

/** Takes long for a server with many tools. */
export async function describeReview(
  { server, content }: AnsweredServer,
  changes: readonly LockedChange[],
  lock: Lock,
  work: Turns,
): Promise<readonly ShownDifference[]> {
  const now = indexItems(content);
  const served = indexItems(server.peek());

  /** The approved item of that name, if this process has seen it. */
  const findFormer = (kind: LockedItemKind, name: string) =>
    [served[kind].get(name), server.peekApproved(LOCKED_ITEMS[kind].list, name)].find(
      (one) => one && lock.check(server.name, kind, one) === 'approved',
    );

  function describe(one: LockedChange) {
    const { kind, name, change } = one;
    if (change === 'gone') return { ...one, isFormerKnown: false, members: [] };
    const [item, former] =
      kind === 'instructions' || name === undefined
        ? [content.instructions, undefined]
        : [now[kind].get(name), findFormer(kind, name)];
    return describeHidden({ ...one, item, former }, lock, true);
  }

  const differences: ShownDifference[] = [];
  for (const one of changes) {
    differences.push(describe(one));
    if (work.isOver()) await work.next();
  }
  return differences;
}
