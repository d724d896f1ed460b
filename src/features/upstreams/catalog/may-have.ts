// §18.2: whether a server that has not said what it has could have a name that clients may see.
import type { UpstreamConfig } from '../../../core/gateway-file/gateway-file.ts';
import { LIST_KINDS, type ListKind } from '../../../protocol/list-kinds.ts';
import type { Lock } from '../lock/lock.ts';
import { isNameAllowed } from './check-item.ts';
import { selectTools } from './select-tools.ts';

/** By the server's own name: what is hidden while it is there is unknown while it is not. */
export type MayHave = (kind: ListKind, ownName: string) => boolean;

export function createMayHave({ name, tools }: UpstreamConfig, lock: Lock): MayHave {
  const selected = selectTools(tools);

  return function mayHave(kind, ownName) {
    const { ruled } = LIST_KINDS[kind];
    if (ruled === 'resource') return false;
    if (kind === 'tools' && !selected.has(ownName)) return false;
    return isNameAllowed(kind, ownName) && lock.knows(name, ruled, ownName);
  };
}
