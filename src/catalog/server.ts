// §18.3, §18.4: one server behind the gateway: its connection and its lists.

import {
  type ApprovableServer,
  LOCKED_ITEMS,
  type LockedList,
} from '../mcp/catalog/approved-items.ts';
import { LIST_KINDS, LIST_NAMES, type ListName } from '../mcp/protocol/list-kinds.ts';
import type { Era } from '../mcp/protocol/revisions.ts';
import type { ConnectionOwner } from '../mcp/upstream/connections.ts';
import {
  GATEWAY_CALLER,
  isCallerOf,
  type Upstream,
  type UpstreamCaller,
} from '../mcp/upstream/upstream.ts';
import type { UpstreamConfig } from '../mcp/upstream/upstream-config.ts';
import { InFlight } from '../mcp/upstream/wrap-upstream.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { readInstructions, readServer } from './approved-content.ts';
import { findItemProblem } from './check-item.ts';
import { selectTools } from './prepare-list.ts';
import { type ListsOwner, ServerLists } from './server-lists.ts';

export interface Server {
  readonly name: string;
  readonly upstream: Upstream;
  /** True if each user has their own lists. */
  readonly isPersonal: boolean;
  readonly lists: ServerLists;
  /** True if the gateway tried to reach the server and failed. */
  isDown(): boolean;
  /** The server's state, for operators. */
  describe(): ServerState;
  /** §24: called when a connection was made, ended, or needs a login: its owner has different lists from then on. */
  noteConnectionChange(owner: ConnectionOwner): void;
  /** Keeps the server open until the work is done, which may take more than one request. */
  readonly inFlight: Pick<InFlight, 'run' | 'enter' | 'leave'>;
  /** Stops listening; requests in flight have `graceMs` at most to finish. */
  close(graceMs: number): Promise<void>;
}

interface ServerState {
  /** Undefined until the first attempt. */
  readonly isUp: boolean | undefined;
  /** When `isUp` was determined, in epoch milliseconds; undefined until the first attempt. */
  readonly since: number | undefined;
  /** The reason why the server is not up. */
  readonly reason: string | undefined;
  readonly era: Era | undefined;
  /** True if each user has their own lists. */
  readonly isPersonal: boolean;
  /** Undefined if the tools are not known, or differ between users. */
  readonly tools: number | undefined;
}

/** The catalogues that serve a server. */
interface ServerOwner extends Omit<ListsOwner, 'onChange'> {
  /** Called when a list that clients may have is out of date: for all callers, unless `isAbout` selects some. */
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
  const inFlight = new InFlight(clock);
  let reason: string | undefined;
  let since: number | undefined;
  const scope = { isPersonal, signal: closing.signal };
  const listsOwner: ListsOwner = {
    ...owner,
    onChange: (list, audience) =>
      owner.onListChange(server, list, (caller) => audience === lists.getAudience(caller)),
  };
  const { logins } = upstream;
  const lists = new ServerLists(runtime, upstream, scope, listsOwner);
  const server: Server = {
    name: config.name,
    upstream,
    isPersonal,
    lists,
    isDown: () => upstream.isUp === false,
    inFlight,
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
      await inFlight.end(graceMs);
      await upstream.close(graceMs);
    },
  };

  upstream.onStateChange((isUp, why) => {
    reason = isUp ? undefined : why;
    const isFirst = since === undefined;
    since = clock.now();
    if (isUp) lists.refresh();
    // If one user is the first to reach the server, nothing changes for users who have yet to log in to it.
    if (isUp && isFirst && logins !== undefined) return;
    for (const list of LIST_NAMES) owner.onListChange(server, list);
  });
  const stopListening = isPersonal
    ? () => {}
    : upstream.listen(GATEWAY_CALLER, {
        listChanged: (list) => lists.invalidate(list, GATEWAY_CALLER),
        listMayHaveChanged: (list) => lists.lookAgain(list, GATEWAY_CALLER),
        // The gateway itself has no subscriptions.
        resourceUpdated() {},
      });
  if (!isPersonal) lists.refresh();
  return server;
}

// §22.4, §22.6: a server's content for operators to approve.

export function toApprovable(config: UpstreamConfig, server: Server): ApprovableServer {
  const selected = selectTools(config.tools);
  const { lists, upstream, inFlight } = server;
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
      const content = await inFlight.run(() => readServer(upstream, GATEWAY_CALLER, signal));
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
