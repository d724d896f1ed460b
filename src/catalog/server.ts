// §18.3, §18.4: one server behind the gateway: its connection, and what it lists.

import {
  type ApprovableServer,
  LOCKED_ITEMS,
  type LockedList,
} from '../mcp/catalog/approved-items.ts';
import {
  LIST_KINDS,
  LIST_NAMES,
  type ListKind,
  type ListName,
} from '../mcp/protocol/list-kinds.ts';
import type { Era } from '../mcp/protocol/revisions.ts';
import type { ConnectionOwner } from '../mcp/upstream/connections.ts';
import {
  bindCaller,
  GATEWAY_CALLER,
  isCallerOf,
  type LoginAccess,
  type Upstream,
  type UpstreamCaller,
  type UpstreamDescription,
  type UpstreamLogins,
} from '../mcp/upstream/upstream.ts';
import type { UpstreamConfig } from '../mcp/upstream/upstream-config.ts';
import { Usage } from '../mcp/upstream/wrap-upstream.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { readInstructions, readServer } from './approved-content.ts';
import { findItemProblem } from './check-item.ts';
import type { FetchedList } from './fetch-list.ts';
import type { Patience } from './list-cache.ts';
import { selectTools } from './prepare-list.ts';
import { type ListsOwner, ServerLists } from './server-lists.ts';

export interface Server {
  readonly name: string;
  readonly upstream: Upstream;
  /** True if each user has lists of its own. */
  readonly isPersonal: boolean;
  readonly lists: ServerLists;
  /** It was tried, and could not be reached. */
  isDown(): boolean;
  /** For operators. */
  describe(): ServerState;
  /** §24: a connection was made, ended, or needs a login: those whose it is have other lists now. */
  noteConnectionChange(owner: ConnectionOwner): void;
  /** Until work that it runs is done the server is not let go: it may be more than one request. */
  readonly usage: Pick<Usage, 'run' | 'enter' | 'leave'>;
  /** Stops listening; what is under way ends, for `graceMs` at most. */
  close(graceMs: number): Promise<void>;
}

interface ServerState {
  /** Undefined until it was tried. */
  readonly isUp: boolean | undefined;
  /** When that was found, in epoch milliseconds; undefined until it was tried. */
  readonly since: number | undefined;
  /** Why it is not up. */
  readonly reason: string | undefined;
  readonly era: Era | undefined;
  /** True if each user has lists of their own. */
  readonly isPersonal: boolean;
  /** Undefined where they are not known, or differ between users. */
  readonly tools: number | undefined;
}

/** The catalogues that serve a server. */
interface ServerOwner extends Omit<ListsOwner, 'onChange'> {
  /** A list that clients may have is not the same any more; for everybody unless it says for whom. */
  onListChange(server: Server, list: ListName, isAbout?: (caller: UpstreamCaller) => boolean): void;
}

export function createServer(
  runtime: Pick<Runtime, 'config' | 'clock' | 'log'>,
  upstream: Upstream,
  owner: ServerOwner,
): Server {
  const { clock } = runtime;
  const { config } = upstream;
  const isPersonal = upstream.facts.personalBy !== undefined;
  const closing = new AbortController();
  const usage = new Usage(clock);
  let reason: string | undefined;
  let since: number | undefined;
  const scope = { isPersonal, signal: closing.signal };
  const listsOwner: ListsOwner = {
    ...owner,
    onChange: (list, audience) =>
      owner.onListChange(server, list, (caller) => audience === lists.getAudience(caller)),
  };
  const { logins } = upstream;
  const lists =
    logins === undefined
      ? new ServerLists(runtime, upstream, scope, listsOwner)
      : new ListsByConnection(logins, runtime, upstream, scope, listsOwner);
  const server: Server = {
    name: config.name,
    upstream,
    isPersonal,
    lists,
    isDown: () => upstream.isUp === false,
    usage,
    describe: () => ({
      isUp: upstream.isUp,
      since,
      reason,
      era: upstream.era,
      isPersonal,
      tools: lists.countTools(),
    }),
    noteConnectionChange(whose) {
      if (logins === undefined) return;
      const isAbout = (caller: UpstreamCaller) => isCallerOf(logins, caller, whose);
      lists.forget(isAbout);
      logins.noteChange(whose);
      for (const list of LIST_NAMES) owner.onListChange(server, list, isAbout);
    },
    async close(graceMs) {
      stopListening();
      closing.abort();
      await usage.end(graceMs);
      await upstream.close(graceMs);
    },
  };

  upstream.onStateChange((isUp, why) => {
    reason = isUp ? undefined : why;
    const isFirst = since === undefined;
    since = clock.now();
    if (isUp) lists.refresh();
    // That one user was the first to reach it changes nothing for those who have yet to log in at it.
    if (isUp && isFirst && logins !== undefined) return;
    for (const list of LIST_NAMES) owner.onListChange(server, list);
  });
  const stopListening = isPersonal
    ? () => {}
    : upstream.listen(GATEWAY_CALLER, {
        listChanged: (list) => lists.invalidate(list, GATEWAY_CALLER),
        listMayHaveChanged: (list) => lists.lookAgain(list, GATEWAY_CALLER),
        // Nobody subscribes for the gateway itself.
        resourceUpdated() {},
      });
  if (!isPersonal) lists.refresh();
  return server;
}

// §22.4, §22.6: a server, as operators approve it.

export function toApprovable(config: UpstreamConfig, server: Server): ApprovableServer {
  const selected = selectTools(config.tools);
  const { lists, upstream, usage } = server;
  const peekList = (list: LockedList) => lists.peek(list, GATEWAY_CALLER) ?? NO_ITEMS;
  return {
    name: config.name,
    isPersonal: server.isPersonal,
    peek: () => ({
      instructions: readInstructions(lists.peekDescription(GATEWAY_CALLER)?.instructions),
      prompts: peekList('prompts'),
      skills: peekList('skills'),
      tools: peekList('tools'),
    }),
    isUsable: (list, item) =>
      findItemProblem(list, item) === undefined &&
      (list !== 'tools' || selected.has(String(item.name))),
    peekApproved: (list, ownName) => lists.lastApproved.find(list, ownName),
    async read(signal) {
      const content = await usage.run(() => readServer(upstream, GATEWAY_CALLER, signal));
      for (const { list } of Object.values(LOCKED_ITEMS)) {
        const served = lists.peek(list, GATEWAY_CALLER);
        if (served === undefined || served.fingerprint === content[list].fingerprint) continue;
        lists.invalidate(LIST_KINDS[list].list, GATEWAY_CALLER);
        await lists.load(list, GATEWAY_CALLER, 'forCall');
      }
      return content;
    },
  };
}

const NO_ITEMS = { items: [] };

// §24.3, §24.4: a server where users log in themselves.

/** Lists of the caller's own connection. Without one: the lists that the server shows anybody, or none. */
class ListsByConnection extends ServerLists {
  private readonly logins: UpstreamLogins;
  private readonly withoutLogin: UpstreamCaller | undefined;

  constructor(logins: UpstreamLogins, ...given: ConstructorParameters<typeof ServerLists>) {
    super(...given);
    this.logins = logins;
    const [, { facts }] = given;
    const isOpenToAll = facts.connection?.auth.list === 'anonymous';
    this.withoutLogin = isOpenToAll ? GATEWAY_CALLER : undefined;
  }

  override findCurrent(kind: ListKind, caller: UpstreamCaller): FetchedList | undefined {
    const access = this.logins.getAccess(caller);
    // Nearly always at hand; otherwise `load` waits for the same access.
    const chosen = access instanceof Promise ? undefined : this.choose(caller, access);
    return chosen && super.findCurrent(kind, chosen);
  }

  override async load(
    kind: ListKind,
    caller: UpstreamCaller,
    patience: Patience,
  ): Promise<FetchedList | undefined> {
    const access = await this.logins.getAccess(caller);
    const chosen = this.choose(caller, access);
    if (chosen !== undefined) {
      const list = await super.load(kind, chosen, patience);
      // A server that lists nothing without a login after all is shown as any other.
      return chosen === GATEWAY_CALLER ? (list ?? NOT_CONNECTED[kind]) : list;
    }
    if (access.kind === 'impossible') return NEVER_CONNECTED[kind];
    return access.kind === 'unavailable' ? undefined : NOT_CONNECTED[kind];
  }

  override async waitIfQuick(kind: ListKind, caller: UpstreamCaller): Promise<void> {
    const chosen = this.choose(caller, await this.logins.getAccess(caller));
    if (chosen !== undefined) await super.waitIfQuick(kind, chosen);
  }

  override peek(kind: ListKind, caller: UpstreamCaller): FetchedList | undefined {
    const chosen = this.chooseKnown(caller);
    if (chosen !== undefined) return super.peek(kind, chosen);
    return this.logins.findOwner(caller) === undefined
      ? NEVER_CONNECTED[kind]
      : NOT_CONNECTED[kind];
  }

  override hadResource(uri: string, caller: UpstreamCaller): boolean {
    const chosen = this.chooseKnown(caller);
    return chosen !== undefined && super.hadResource(uri, chosen);
  }

  override async describe(
    caller: UpstreamCaller,
    patience: Patience,
  ): Promise<UpstreamDescription | undefined> {
    const chosen = this.choose(caller, await this.logins.getAccess(caller));
    return chosen && super.describe(chosen, patience);
  }

  override peekDescription(caller: UpstreamCaller): UpstreamDescription | undefined {
    const chosen = this.chooseKnown(caller);
    return chosen && super.peekDescription(chosen);
  }

  override peekProblem(caller: UpstreamCaller): string | undefined {
    const chosen = this.chooseKnown(caller);
    return chosen && super.peekProblem(chosen);
  }

  override invalidate(list: ListName, caller: UpstreamCaller): void {
    const chosen = this.chooseKnown(caller);
    if (chosen !== undefined) super.invalidate(list, chosen);
  }

  override getAudience(caller: UpstreamCaller): string {
    return super.getAudience(this.chooseKnown(caller) ?? GATEWAY_CALLER);
  }

  /** Undefined if the caller sees nothing of the server yet. */
  private choose(caller: UpstreamCaller, access: LoginAccess): UpstreamCaller | undefined {
    if (access.kind === 'active') return bindCaller(caller, access.connectionId);
    // A connection that is unavailable for a while is served as it was.
    return access.kind === 'unavailable' ? this.chooseKnown(caller) : this.withoutLogin;
  }

  private chooseKnown(caller: UpstreamCaller): UpstreamCaller | undefined {
    const connectionId = this.logins.peekConnectionId(caller);
    return connectionId === undefined ? this.withoutLogin : bindCaller(caller, connectionId);
  }
}

/** Empty lists. Each kind has its own object, since results derived from a list are looked up by the object. */
function createNoLists(
  needsLogin: 'possible' | 'impossible',
): Readonly<Record<ListKind, FetchedList>> {
  const createNoList = (): FetchedList => ({
    items: [],
    ttlMs: 1_000,
    fingerprint: '',
    bytes: 0,
    cut: undefined,
    needsLogin,
  });
  return {
    tools: createNoList(),
    prompts: createNoList(),
    resources: createNoList(),
    templates: createNoList(),
    skills: createNoList(),
  };
}

const NOT_CONNECTED = createNoLists('possible');
const NEVER_CONNECTED = createNoLists('impossible');
