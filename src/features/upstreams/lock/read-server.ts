// §18.7: what a server says now, as it would be approved.
import { fetchList } from '../catalog/fetch-list.ts';
import { type Upstream, type UpstreamCaller, UpstreamError } from '../upstream.ts';
import { computeFingerprint, type Fingerprint, type LockedKind } from './fingerprint.ts';
import type { LockedItems, LockedServer } from './lock-file.ts';

/** @throws UpstreamError also for what cannot be approved: a list that was cut, an item that nests too deep. */
export async function readLockedServer(
  upstream: Upstream,
  caller: UpstreamCaller,
  signal: AbortSignal,
): Promise<LockedServer> {
  const { instructions } = await upstream.describe(caller);
  const readItems = async (list: 'tools' | 'prompts', kind: 'tool' | 'prompt') => {
    const { items, cut } = await fetchList(upstream, list, caller, signal);
    if (cut !== undefined)
      throw new UpstreamError('invalid', `not all ${list} can be read: ${cut}`);
    return toLockedItems(kind, items);
  };
  const tools = await readItems('tools', 'tool');
  const prompts = await readItems('prompts', 'prompt');
  const isSilent = instructions === undefined || instructions.trim() === '';
  return {
    instructions: isSilent ? undefined : [computeOne('instructions', instructions)],
    prompts,
    tools,
  };
}

/** Of two items with one name the first counts, as in the catalogue. */
function toLockedItems(
  kind: 'tool' | 'prompt',
  items: readonly Readonly<Record<string, unknown>>[],
): LockedItems {
  const locked = new Map<string, readonly Fingerprint[]>();
  for (const item of items) {
    const { name } = item;
    if (typeof name !== 'string' || locked.has(name)) continue;
    locked.set(name, [computeOne(kind, item)]);
  }
  return locked;
}

function computeOne(kind: LockedKind, item: unknown): Fingerprint {
  const fingerprint = computeFingerprint(kind, item);
  if (fingerprint === undefined) {
    throw new UpstreamError('invalid', `one of its ${kind}s nests too deep to be approved`);
  }
  return fingerprint;
}
