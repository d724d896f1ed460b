// §26.2: the built-in catalogue as its guards let it be listed.

import type { ListKind } from '../../protocol/list-kinds.ts';
import type { BuiltIn, BuiltInList } from './built-in.ts';
import type { ListGuards } from './list-guards.ts';
import type { Entry } from './prepare-list.ts';
import { BUILT_IN } from './prepare-list.ts';

export function guardBuiltIn(builtIn: BuiltIn, listGuards: ListGuards): BuiltIn {
  /** By the list that it was made of; one of which a guard could not be asked is made again. */
  const known = new WeakMap<readonly Entry[], BuiltInList>();
  const fixed = new Map<ListKind, BuiltInList>();

  const describe = (kind: ListKind) => ({
    server: BUILT_IN,
    kind,
    join: (ownName: string) => ownName,
  });

  function select(kind: ListKind, { entries, cache }: BuiltInList): BuiltInList {
    const shown = entries.flatMap((entry) => {
      const verdict = listGuards.peek(describe(kind), entry.item);
      if (verdict === undefined) return [entry];
      if (verdict.kind === 'hidden') return [];
      return [{ ...entry, item: verdict.item, ownItem: verdict.item }];
    });
    return { entries: shown, byName: new Map(shown.map((entry) => [entry.name, entry])), cache };
  }

  return {
    catalog: builtIn.catalog,
    fixed,
    async list(kind, context) {
      const list = await builtIn.list(kind, context);
      const made = known.get(list.entries);
      if (made !== undefined) return { ...made, cache: list.cache };
      const items = list.entries.map(({ item }) => item);
      const { hasFailed } = await listGuards.judge({ ...describe(kind), items });
      const selected = select(kind, list);
      if (hasFailed) return { ...selected, cache: { ttlMs: 0, scope: list.cache.scope } };
      known.set(list.entries, selected);
      if (builtIn.fixed.has(kind)) fixed.set(kind, selected);
      return selected;
    },
    peek(kind) {
      const list = builtIn.peek(kind);
      return known.get(list.entries) ?? select(kind, list);
    },
  };
}
