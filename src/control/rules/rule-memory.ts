// Decisions are remembered for each token, so that a list of many tools under many rules costs little.

import { identifyCredential, type UserContext } from '../../http/endpoint/message.ts';
import type { PolicyCaller } from '../../mcp/calls/policy.ts';
import type { RuledItem } from '../../mcp/calls/rules.ts';
import type { ItemKind } from '../../mcp/protocol/list-kinds.ts';
import type { Clock } from '../../platform/clock.ts';
import { hashSha256 } from '../../platform/ids.ts';

/** For all callers: some 15 MB. */
const MAX_VALUES = 100_000;
const MAX_CALLERS = 10_000;
/**
 * No name is longer, but one that is made up. URIs may be: longer ones, which a server may list by the thousand, are kept
 * by their SHA-256.
 */
const MAX_NAME_LENGTH = 256;

/** The memory of one caller. */
interface Caller<Value, Facts> {
  /** Facts that follow from the caller alone. */
  readonly facts: Facts;
  find(item: RuledItem): Value | undefined;
  remember(item: RuledItem, value: Value): void;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
  count(): number;
}

/** Forgotten when the token expires, and those who called longest ago first where there are many. */
export function createRuleMemory<Value, Facts>(
  clock: Clock,
  computeFacts: (caller: PolicyCaller) => Facts,
) {
  type Known = Caller<Value, Facts>;
  /** Keyed by token, view and client; the latest caller is last. */
  const callers = new Map<string, Known>();
  /** A request asks about many names: its token is hashed once. */
  const opened = new WeakMap<
    UserContext,
    Pick<PolicyCaller, 'clientId' | 'view'> & { readonly it: Known }
  >();
  let total = 0;

  function forget(key: string, caller: Known): void {
    callers.delete(key);
    total -= caller.count();
  }

  /** Forgets tokens that have expired, then the oldest ones. */
  function makeRoom(): void {
    const now = clock.now();
    for (const [key, caller] of callers) if (caller.expiresAt <= now) forget(key, caller);
    for (const [key, caller] of callers) {
      if (total < MAX_VALUES && callers.size < MAX_CALLERS) return;
      forget(key, caller);
    }
  }

  function createCaller(key: string, caller: PolicyCaller, expiresAt: number): Known {
    const kinds: Readonly<Record<ItemKind, Map<string, Value>>> = {
      tool: new Map(),
      prompt: new Map(),
      resource: new Map(),
    };
    /** Keyed by SHA-256: apart from the others, since a URI may look like such a key. */
    const longUris = new Map<string, Value>();
    function findPlace({ kind, name }: RuledItem) {
      if (name.length <= MAX_NAME_LENGTH) return { values: kinds[kind], id: name };
      return kind === 'resource' ? { values: longUris, id: hashSha256(name) } : undefined;
    }
    const created: Known = {
      expiresAt,
      facts: computeFacts(caller),
      find(item) {
        const place = findPlace(item);
        return place?.values.get(place.id);
      },
      remember(item, value) {
        if (total >= MAX_VALUES) makeRoom();
        // Whoever was forgotten meanwhile is not filled any more.
        if (callers.get(key) !== created) return;
        const place = findPlace(item);
        if (place === undefined) return;
        if (!place.values.has(place.id)) total += 1;
        place.values.set(place.id, value);
      },
      count: () => kinds.tool.size + kinds.prompt.size + kinds.resource.size + longUris.size,
    };
    return created;
  }

  function find(caller: PolicyCaller, now: number): Known {
    const { user, clientId, view = '' } = caller;
    // A digest and a view's name have no spaces: nothing that a client is called can be taken for another's.
    const key = user === undefined ? view : `${identifyCredential(user)} ${view} ${clientId ?? ''}`;
    const expiresAt = readExpiry(user);
    const known = callers.get(key);
    if (expiresAt <= now) {
      if (known !== undefined) forget(key, known);
      return createCaller(key, caller, expiresAt);
    }
    if (known === undefined && callers.size >= MAX_CALLERS) makeRoom();
    const found = known ?? createCaller(key, caller, expiresAt);
    callers.delete(key);
    callers.set(key, found);
    return found;
  }

  return {
    open(caller: PolicyCaller): Known {
      const { user, clientId, view } = caller;
      if (user === undefined) return find(caller, clock.now());
      const known = opened.get(user);
      if (known !== undefined && known.clientId === clientId && known.view === view)
        return known.it;
      const it = find(caller, clock.now());
      opened.set(user, { clientId, view, it });
      return it;
    },
  };
}

/** Without a time at which a token ends, nothing of it is kept beyond its request. */
function readExpiry(user: UserContext | undefined): number {
  // The memory of a grant is by its version: others take its place.
  if (user === undefined || user.grant !== undefined) return Number.POSITIVE_INFINITY;
  const { exp } = user.claims;
  return typeof exp === 'number' ? exp * 1000 : 0;
}
