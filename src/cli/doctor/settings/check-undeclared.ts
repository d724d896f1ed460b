// Lists that a server has and does not declare: neither the gateway nor clients ask for them.
import { LIST_KINDS, LIST_NAMES, type ListName } from '../../../protocol/list-kinds.ts';
import { offersList } from '../../../upstreams/messages/description.ts';
import type { Upstream, UpstreamCaller } from '../../../upstreams/upstream.ts';
import { type Finding, warning } from '../finding.ts';

/** For a list that most servers do not have: some never answer what they do not know. */
const TIME_LIMIT_MS = 2000;

/** Never rejects. */
export async function checkUndeclared(
  upstream: Upstream,
  caller: UpstreamCaller,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const { capabilities } = await upstream.describe(caller).catch(() => ({ capabilities: {} }));
  const undeclared = LIST_NAMES.filter((list) => !offersList(capabilities, list));
  const found = await Promise.all(undeclared.map((list) => countItems(list)));
  return undeclared.flatMap((list, at) => {
    const count = found[at] ?? 0;
    return count === 0 ? [] : [warnOfList(upstream.config.name, list, count)];
  });

  /** Of the first page. */
  async function countItems(list: ListName): Promise<number> {
    const { method, member } = LIST_KINDS[list];
    const limit = AbortSignal.any([signal, AbortSignal.timeout(TIME_LIMIT_MS)]);
    const request = { method, params: {}, signal: limit, trace: {}, logLevel: undefined };
    const result = await upstream.request(caller, request).catch(() => undefined);
    const items = result?.[member];
    return Array.isArray(items) ? items.length : 0;
  }
}

const warnOfList = (server: string, list: ListName, count: number): Finding =>
  warning('server.undeclared', {
    what: `${server} does not declare ${list}; its list has ${count}.`,
    why: `A server is asked only for what its capabilities declare: nobody sees ${count === 1 ? `this ${LIST_KINDS[list].noun}` : `these ${list}`}.`,
    setting: 'POSTERN_CONFIG',
    remedy: `have the server declare ${list} in the capabilities that it answers the handshake with.`,
  });
