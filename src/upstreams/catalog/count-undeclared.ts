// Lists that a server has and does not declare: neither the gateway nor clients ask for them, but `postern doctor` does.
import { LIST_KINDS, LIST_NAMES, type ListName } from '../../protocol/list-kinds.ts';
import { offersList } from '../messages/description.ts';
import type { Upstream, UpstreamCaller } from '../upstream.ts';

export interface UndeclaredList {
  readonly list: ListName;
  /** Entries on its first page, at least one. */
  readonly count: number;
}

/** For a list that most servers do not have: some never answer what they do not know. */
const TIME_LIMIT_MS = 2000;

/** Never rejects. */
export async function countUndeclared(
  upstream: Upstream,
  caller: UpstreamCaller,
  signal: AbortSignal,
): Promise<readonly UndeclaredList[]> {
  const { capabilities } = await upstream.describe(caller).catch(() => ({ capabilities: {} }));
  const undeclared = LIST_NAMES.filter((list) => !offersList(capabilities, list));
  const counted = await Promise.all(
    undeclared.map(async (list) => ({ list, count: await countItems(list) })),
  );
  return counted.filter(({ count }) => count > 0);

  async function countItems(list: ListName): Promise<number> {
    const { method, member } = LIST_KINDS[list];
    const limit = AbortSignal.any([signal, AbortSignal.timeout(TIME_LIMIT_MS)]);
    const request = { method, params: {}, signal: limit, trace: {}, logLevel: undefined };
    const result = await upstream.request(caller, request).catch(() => undefined);
    const items = result?.[member];
    return Array.isArray(items) ? items.length : 0;
  }
}
