// §18.7: what a server says now, as it would be approved.

import { type FetchedList, fetchList } from '../catalog/fetch-list.ts';
import type { RawItem } from '../mcp/catalog/catalog.ts';
import { type Upstream, type UpstreamCaller, UpstreamError } from '../mcp/upstream/upstream.ts';
import { type Clock, createTurns } from '../platform/clock.ts';
import {
  computeFingerprint,
  type Fingerprint,
  LOCKED_ITEMS,
  type LockedItemKind,
  type LockedKind,
  type LockedList,
  type LockedServer,
} from './lock-file.ts';

/** The locked parts of a server, as it wrote them. */
export interface ReadServer {
  /** Undefined where it has none. */
  readonly instructions: string | undefined;
  readonly tools: FetchedList;
  readonly prompts: FetchedList;
  readonly skills: FetchedList;
}

/** @throws UpstreamError also for a list that was cut, which cannot be approved. */
export async function readServer(
  upstream: Upstream,
  caller: UpstreamCaller,
  signal: AbortSignal,
): Promise<ReadServer> {
  const { instructions } = await upstream.describe(caller);
  const readWhole = async (name: LockedList) => {
    const list = await fetchList(upstream, name, caller, signal);
    if (list.cut !== undefined)
      throw new UpstreamError('invalid', `not all ${name} can be read: ${list.cut}`);
    return list;
  };
  const tools = await readWhole('tools');
  const prompts = await readWhole('prompts');
  const skills = await readWhole('skills');
  const isSilent = instructions === undefined || instructions.trim() === '';
  return { instructions: isSilent ? undefined : instructions, tools, prompts, skills };
}

/** @throws UpstreamError for an item that nests too deep to be approved. */
export async function toLockedServer(
  { instructions, ...lists }: ReadServer,
  clock: Clock,
): Promise<LockedServer> {
  const work = createTurns(clock);

  async function toLockedItems(kind: LockedItemKind) {
    const locked = new Map<string, readonly Fingerprint[]>();
    for (const [name, item] of indexItems(kind, lists[LOCKED_ITEMS[kind].list].items)) {
      locked.set(name, [computeOne(kind, item)]);
      if (work.isOver()) await work.next();
    }
    return locked;
  }

  return {
    instructions:
      instructions === undefined ? undefined : [computeOne('instructions', instructions)],
    prompts: await toLockedItems('prompt'),
    skills: await toLockedItems('skill'),
    tools: await toLockedItems('tool'),
  };
}

/** Keyed by name or URI. The first of two with one name counts, as in the catalogue. */
export function indexItems(
  kind: LockedItemKind,
  items: readonly RawItem[],
): ReadonlyMap<string, RawItem> {
  const found = new Map<string, RawItem>();
  for (const item of items) {
    const name = item[LOCKED_ITEMS[kind].key];
    if (typeof name === 'string' && !found.has(name)) found.set(name, item);
  }
  return found;
}

function computeOne(kind: LockedKind, item: unknown): Fingerprint {
  const fingerprint = computeFingerprint(kind, item);
  if (fingerprint === undefined) {
    throw new UpstreamError('invalid', `one of its ${kind}s nests too deep to be approved`);
  }
  return fingerprint;
}
