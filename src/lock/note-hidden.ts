// §18.7, §22.7: what operators are told of what the lock hides.

import { LOCKED_ITEMS, type LockedKind } from '../mcp/catalog/approved-items.ts';
import { isObject } from '../platform/json.ts';
import type { Runtime } from '../runtime/runtime.ts';

/** Counts what the lock hides, and notifies operators of what it hid of a server within some seconds. */
export function createNoteHidden({ config, clock, metrics, notifier }: Runtime) {
  /** Entries by server. */
  const noted = new Map<string, Set<string>>();

  function tell(server: string) {
    const entries = [...(noted.get(server) ?? [])].sort();
    noted.delete(server);
    const more = entries.length > MAX_NAMED ? `, and ${entries.length - MAX_NAMED} more` : '';
    notifier.notify({
      kind: 'lock',
      about: `${server} ${entries.join()}`,
      text: `The lock hides what nobody has approved of the MCP server ${server}: ${entries.slice(0, MAX_NAMED).join(', ')}${more}. Approve it with postern lock, or leave it hidden.`,
      ...(config.admin.groups.length > 0 && { link: `${config.server.baseUrl}/admin` }),
      data: { server, entries: entries.length },
    });
  }

  return (server: string, kind: LockedKind, item: unknown, verdict: 'new' | 'changed') => {
    metrics.recordLockRefusal(server, kind, verdict);
    if (!notifier.wants('lock')) return;
    const id = isObject(item) && kind !== 'instructions' ? item[LOCKED_ITEMS[kind].key] : '';
    const entries = noted.get(server) ?? new Set();
    if (!noted.has(server)) clock.after(COLLECT_MS, () => tell(server));
    noted.set(server, entries.add(`${verdict} ${kind} ${id}`.trim()));
  };
}

/** A list is read item by item. */
const COLLECT_MS = 5_000;
const MAX_NAMED = 5;
