// What was decided is remembered for each token, so that a list of many tools under many rules costs little.
import type { Clock } from '../../core/clock.ts';
import { hashSha256 } from '../../core/sha256.ts';
import type { UserContext } from '../../core/user-context.ts';
import type { RuleCaller, RuledItem } from './rules.ts';

/** What is remembered of one caller. */
export interface CallerMemory<Value> {
  find(item: RuledItem): Value | undefined;
  remember(item: RuledItem, value: Value): void;
}

export interface RuleMemory<Value> {
  /** Undefined for a caller of whom nothing may be remembered. */
  open(caller: RuleCaller): CallerMemory<Value> | undefined;
}

/** Of all callers: some 15 MB. */
const MAX_VALUES = 100_000;
/** No name is longer, but one that is made up. URIs may be; few are asked for often. */
const MAX_NAME_LENGTH = 256;

interface Caller<Value> extends CallerMemory<Value> {
  /** Epoch milliseconds. */
  readonly expiresAt: number;
  count(): number;
}

/** Forgotten when the token expires, and those who called longest ago first where there are many. */
export function createRuleMemory<Value>(clock: Clock): RuleMemory<Value> {
  /** By token and client; who called last is last. */
  const callers = new Map<string, Caller<Value>>();
  /** A request asks about many names: its token is hashed once. */
  const opened = new WeakMap<
    UserContext,
    { readonly client: string; readonly it: Caller<Value> }
  >();
  let total = 0;

  function forget(key: string, caller: Caller<Value>): void {
    callers.delete(key);
    total -= caller.count();
  }

  /** Makes room: of tokens that have expired, then of the oldest. */
  function makeRoom(now: number): void {
    for (const [key, caller] of callers) if (caller.expiresAt <= now) forget(key, caller);
    for (const [key, caller] of callers) {
      if (total < MAX_VALUES) return;
      forget(key, caller);
    }
  }

  function createCaller(key: string, expiresAt: number): Caller<Value> {
    const kinds = { tool: new Map(), prompt: new Map(), resource: new Map() } satisfies Record<
      RuledItem['kind'],
      Map<string, Value>
    >;
    const created: Caller<Value> = {
      expiresAt,
      find: ({ kind, name }) => kinds[kind].get(name),
      remember({ kind, name }, value) {
        if (name.length > MAX_NAME_LENGTH) return;
        if (total >= MAX_VALUES) makeRoom(clock.now());
        // It may have been forgotten meanwhile: then nobody finds it any more.
        if (callers.get(key) === created && !kinds[kind].has(name)) total += 1;
        kinds[kind].set(name, value);
      },
      count: () => kinds.tool.size + kinds.prompt.size + kinds.resource.size,
    };
    return created;
  }

  /** `secret` is the token; undefined where nobody logs in. */
  function find(secret: string | undefined, client: string, expiresAt: number): Caller<Value> {
    const key = secret === undefined ? '' : `${hashSha256(secret)} ${client}`;
    const caller = callers.get(key) ?? createCaller(key, expiresAt);
    callers.delete(key);
    callers.set(key, caller);
    return caller;
  }

  return {
    open({ user, clientId: client = '' }) {
      if (user === undefined) return find(undefined, '', Number.POSITIVE_INFINITY);
      const known = opened.get(user);
      if (known?.client === client) return known.it;
      const expiresAt = readExpiry(user);
      if (expiresAt <= clock.now()) return undefined;
      const it = find(user.token, client, expiresAt);
      opened.set(user, { client, it });
      return it;
    },
  };
}

function readExpiry({ claims: { exp } }: UserContext): number {
  return typeof exp === 'number' ? exp * 1000 : 0;
}
