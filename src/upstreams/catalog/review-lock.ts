// §22.6: what approving a server would change in postern.lock: as it answers now, not as it was last listed.

import type { RawItem } from '../../mcp/catalog/catalog.ts';
import type { Clock, Turns } from '../../platform/clock.ts';
import { hashSha256 } from '../../platform/ids.ts';
import { LIST_KINDS } from '../../protocol/list-kinds.ts';
import { findDifferences } from '../lock/compare.ts';
import {
  type Fingerprint,
  LOCKED_ITEM_KINDS,
  LOCKED_ITEMS,
  type LockedItemKind,
  type LockedKind,
} from '../lock/fingerprint.ts';
import type { Lock } from '../lock/lock.ts';
import type { LockedServer, LockFile } from '../lock/lock-file.ts';
import { indexItems, type ReadServer, readServer, toLockedServer } from '../lock/read-server.ts';
import { GATEWAY_CALLER, UpstreamError } from '../upstream.ts';
import { describeHidden, type ShownDifference } from './list-lock-differences.ts';
import type { PlannedServer } from './plan.ts';

export interface ServerReview {
  readonly server: string;
  /** Of what was approved and of what the server says now: another one means that either has changed. */
  readonly digest: string;
  /** All that `postern lock` would change of this server; also what clients do not see for other reasons. */
  readonly changes: readonly ReviewedChange[];
  /** As it would be approved. */
  readonly found: LockedServer;
}

export interface ReviewedChange
  extends Omit<ShownDifference, 'change' | 'isFormerKnown' | 'members'> {
  readonly change: ShownDifference['change'] | 'gone';
}

/** With what it says now, and what was approved. */
export interface ReviewedDifference extends Omit<ShownDifference, 'change'> {
  readonly change: ReviewedChange['change'];
}

/** A server as it answered. */
export interface AnsweredServer {
  readonly planned: PlannedServer;
  readonly read: ReadServer;
  readonly found: LockedServer;
}

/** An operator waits for the answer, so a server gets no more time than this. */
const READ_LIMIT_MS = 15_000;

/** Lists that are served are asked for anew where they are no longer what the server says. @throws UpstreamError */
export async function askServer(planned: PlannedServer, clock: Clock): Promise<AnsweredServer> {
  const ending = new AbortController();
  let cancel = () => {};
  const tooLate = new Promise<never>((_, reject) => {
    cancel = clock.after(READ_LIMIT_MS, () => {
      reject(new UpstreamError('timeout', `it did not answer within ${READ_LIMIT_MS / 1000} s`));
      ending.abort();
    });
  });
  async function readNow(): Promise<ReadServer> {
    const { usage, upstream } = planned.server;
    const read = await usage.run(() => readServer(upstream, GATEWAY_CALLER, ending.signal));
    await renewServed(planned, read);
    return read;
  }

  try {
    const read = await Promise.race([readNow(), tooLate]);
    return { planned, read, found: await toLockedServer(read, clock) };
  } finally {
    cancel();
  }
}

async function renewServed({ server }: PlannedServer, read: ReadServer): Promise<void> {
  const { lists } = server;
  for (const kind of LOCKED_ITEM_KINDS) {
    const { list } = LOCKED_ITEMS[kind];
    const served = lists.peek(list, GATEWAY_CALLER);
    if (served === undefined || served.fingerprint === read[list].fingerprint) continue;
    lists.invalidate(LIST_KINDS[list].list, GATEWAY_CALLER);
    await lists.load(list, GATEWAY_CALLER, 'forCall');
  }
}

export function reviewServer({ planned, found }: AnsweredServer, approved: LockFile): ServerReview {
  const { name } = planned.config;
  const former = selectServer(name, approved.servers.get(name));
  const next = selectServer(name, found);
  return {
    server: name,
    digest: hashSha256(
      JSON.stringify([name, ...[approved.servers.get(name), found].map(listHashes)]),
    ),
    changes: findDifferences(former, next, () => false).map(({ kind, name: own, change }) => ({
      server: name,
      kind,
      name: own,
      change: CHANGES[change],
    })),
    found,
  };
}

/** All that decides, and less than half of what the file has: a server may have thousands of tools. */
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

/** Of a server with many tools this is long work. */
export async function describeReview(
  answered: AnsweredServer,
  { changes }: ServerReview,
  { lock, work }: { readonly lock: Lock; readonly work: Turns },
): Promise<readonly ReviewedDifference[]> {
  const describe = createDescribe(answered, lock);
  const differences: ReviewedDifference[] = [];
  for (const one of changes) {
    const { kind, name, change } = one;
    differences.push(
      change === 'gone'
        ? { ...one, isFormerKnown: false, members: [] }
        : describe(kind, name, change),
    );
    if (work.isOver()) await work.next();
  }
  return differences;
}

const selectServer = (name: string, server: LockedServer | undefined): LockFile => ({
  servers: new Map(server && [[name, server]]),
});

type Describe = (
  kind: LockedKind,
  name: string | undefined,
  change: ShownDifference['change'],
) => ShownDifference;

const mapKinds = <Value>(
  toValue: (kind: LockedItemKind) => Value,
): Readonly<Record<LockedItemKind, Value>> => ({
  prompt: toValue('prompt'),
  skill: toValue('skill'),
  tool: toValue('tool'),
});

function createDescribe({ planned, read }: AnsweredServer, lock: Lock): Describe {
  const { config, server } = planned;
  const indexServed = (kind: LockedItemKind) =>
    indexItems(kind, server.lists.peek(LOCKED_ITEMS[kind].list, GATEWAY_CALLER)?.items ?? []);
  const indexNow = (kind: LockedItemKind) => indexItems(kind, read[LOCKED_ITEMS[kind].list].items);
  const now = mapKinds(indexNow);
  const served = mapKinds(indexServed);

  /** What of that name was approved, where this process has seen it. */
  function findFormer(kind: LockedItemKind, name: string): RawItem | undefined {
    const { list } = LOCKED_ITEMS[kind];
    const seen = [served[kind].get(name), server.lists.peekApproved(list, name)];
    return seen.find((one) => one && lock.check(config.name, kind, one) === 'approved');
  }

  return function describe(kind, name, change) {
    const shared = { server: config.name, kind, name, change };
    const hidden =
      kind === 'instructions' || name === undefined
        ? { ...shared, item: read.instructions, former: undefined }
        : { ...shared, item: now[kind].get(name), former: findFormer(kind, name) };
    return describeHidden(hidden, lock, true);
  };
}
