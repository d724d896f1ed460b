// §18.2: views: what each path offers.

import { failUpstream } from '../errors/gateway-error.ts';
import type { RawItem } from '../mcp/catalog/catalog.ts';
import type { ListKind } from '../mcp/protocol/list-kinds.ts';
import type { UpstreamCaller } from '../mcp/upstream/upstream.ts';
import { DEFAULT_TTL_MS } from './fetch-list.ts';
import type { JoinedList } from './join-lists.ts';
import type { Plan, PlannedServer, Who } from './plan.ts';
import type { Entry } from './prepare-list.ts';
import type { Server } from './server.ts';
import type { ViewConfig } from './view-shape.ts';

/**
 * What one path offers: `/mcp` everything, `/mcp/<server>` one server, `/mcp/<view>` a selection from the configuration file
 * (§25). Rules are not applied here.
 */
export interface View {
  /** `''` for `/mcp`, otherwise the name of the server or view. */
  readonly name: string;
  /** §25: true for a view that shows only a part of `/mcp`. */
  readonly isCurated: boolean;
  /** Includes the lists of servers that are down. `peek`: as far as they are known, however old, without waiting for a server. */
  list(kind: ListKind, who: Who, peek?: 'peek'): Promise<ListView>;
  /**
   * The entry that `find` would return, if it is known at once: nearly always, but not once the entry's server has announced a
   * change.
   */
  findCurrent(kind: 'tools' | 'prompts', name: string, caller: UpstreamCaller): Entry | undefined;
  /** `name` is the name, or the template, that clients see at this path. */
  find(kind: ListKind, name: string, who: Who): Promise<FoundItem | undefined>;
  /** The resource from the server that lists the URI, as far as that is known without waiting for a server. */
  findListed(uri: string, who: Who): Promise<FoundResource | undefined>;
  /** Finds a resource that no result linked to: its server lists the URI, used to list it, or has a matching template. */
  findResource(uri: string, who: Who): Promise<FoundResource | undefined>;
  /** Finds only servers of this path. */
  findServer(name: string): Server | undefined;
  /** In the order of the configuration file. */
  listServers(): readonly Server[];
  /** True if this path can have a resource that is in none of its lists, such as one that a result linked to. */
  includes(resource: Pick<FoundResource, 'server' | 'uri'>): boolean;
  /** True if this path serves the built-in catalogue. */
  hasBuiltIn(): boolean;
  /** The view in the current configuration file; undefined for all but curated views. */
  findConfig(): ViewConfig | undefined;
  /** The form of entries that clients see at this path. */
  readonly shown: 'own' | 'joined';
}

export interface ListView extends JoinedList {
  /** Milliseconds for which the list may be cached. */
  readonly ttlMs: number;
  /** True if each user has their own lists. */
  readonly isPersonal: boolean;
  /** True once all servers have listed their entries. */
  readonly hasAllServers: boolean;
}

/** The list of a server that offers nothing. */
export const EMPTY_LIST: ListView = {
  entries: [],
  positions: new Map(),
  ttlMs: DEFAULT_TTL_MS,
  isPersonal: false,
  hasAllServers: true,
};

export type FoundItem = Entry | AbsentItem;

/** A name that belongs to a server that has not listed its entries yet. */
interface AbsentItem {
  readonly kind: 'absent';
  readonly server: Server;
  /** The name that clients of `/mcp` would see. */
  readonly name: string;
}

export interface FoundResource {
  /** `''` for the built-in catalogue. */
  readonly server: string;
  /** The server's own URI. */
  readonly ownUri: string;
  /** The URI that clients of `/mcp` see and that rules name. */
  readonly uri: string;
  readonly annotations: Entry['annotations'];
}

/** Fails with an error instead of a result: the tool may not exist, and metrics are labelled with tool names. */
export function failAbsent({ name, lists }: Server, who: Who): never {
  const problem = lists.peekProblem(who.upstream);
  const reason = problem === undefined ? '' : `. The reason: ${problem}`;
  return failAtServer(name, `is not available now; try again in a moment${reason}`);
}

/** `problem` continues a sentence that begins with the server's name. @throws GatewayError always. */
export const failAtServer = (server: string, problem: string, cause?: unknown): never =>
  failUpstream(`${server} ${problem}.`, { facts: { server }, cause });

/**
 * §18.5: false if no rule can allow the caller anything on the server. The server then looks like one that offers nothing, whether
 * it is up or not.
 */
export const mayUseSome = (
  { policies, naming }: Plan,
  { config }: PlannedServer,
  { policy }: Who,
): boolean => policies.mayAllowSome(naming.findStart(config), policy);

/** The entry's name for clients of the view's path. */
export const toShownName = ({ shown }: View, { ownName, name }: Entry): string =>
  shown === 'own' ? ownName : name;

export const toShownItem = ({ shown }: View, { ownItem, item }: Entry): RawItem =>
  shown === 'own' ? ownItem : item;
