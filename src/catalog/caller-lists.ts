// §18.2: the lists of a plan's servers for one caller, joined for `/mcp` or for a view of it. Also finds URIs that are in no list.

import { LIST_KINDS, type ListKind } from '../mcp/protocol/list-kinds.ts';
import { isAppUri, readSharedUri, toOwnUri, toSharedUri } from './apps/app-tools.ts';
import type { BuiltIn } from './built-in.ts';
import { findTemplate } from './find-template.ts';
import type { JoinedList, JoinedPart } from './join-lists.ts';
import type { Plan, PlannedServer, Who } from './plan.ts';
import { BUILT_IN, type Entry, type PreparedList } from './prepare-list.ts';
import { findInSkillFolder, findSkillFile } from './skills/skill-files.ts';
import { type FoundItem, type FoundResource, type ListView, mayUseSome } from './view.ts';

const NOTHING: readonly Entry[] = [];
/** The cache lifetime of a list while one of its servers has not listed its entries yet. */
const SHORT_TTL_MS = 1_000;
const MAX_TTL_MS = 60_000;
/** A list made of cached data is only for look-ups: it may be incomplete, and must not be cached for others. */
const NOT_KEPT = { ttlMs: 0, isPersonal: true, hasAllServers: false };

/** A snapshot of the lists: each list is requested only once. */
export class CallerLists {
  private readonly plan: Plan;
  private readonly part: JoinedPart;
  private readonly who: Who;
  private readonly joined = new Map<string, Promise<ListView>>();

  constructor(plan: Plan, part: JoinedPart, who: Who) {
    this.plan = plan;
    this.part = part;
    this.who = who;
  }

  /** `peek`: from the entries that servers have listed so far. */
  join(kind: ListKind, peek?: 'peek'): Promise<ListView> {
    const key = `${kind} ${peek}`;
    const joining = this.joined.get(key) ?? this.joinAll(kind, peek);
    this.joined.set(key, joining);
    return joining;
  }

  /**
   * Undefined while the server has not listed. A caller who may use nothing on the server does not wait for it, since the delay
   * would reveal whether the server is running.
   */
  async load(planned: PlannedServer, kind: ListKind): Promise<PreparedList | undefined> {
    const { lists } = planned.server;
    const { upstream, patience } = this.who;
    const loading = lists.load(kind, upstream, patience);
    if (!mayUseSome(this.plan, planned, this.who)) {
      loading.catch(() => {});
      return this.peek(planned, kind);
    }
    const list = await loading;
    return list && planned.prepareList(list);
  }

  /** Like `load`, but only as far as the list is known; nothing is requested. */
  peek({ server, prepareList }: PlannedServer, kind: ListKind): PreparedList | undefined {
    const known = server.lists.peek(kind, this.who.upstream);
    return known && prepareList(known);
  }

  /** Finds the item by its name at `/mcp`. */
  async find(kind: ListKind, name: string): Promise<FoundItem | undefined> {
    if (!isCalled(kind))
      return findIn(await this.join(kind, 'peek'), name) ?? findIn(await this.join(kind), name);
    const { naming, servers } = this.plan;
    const own = await this.listBuiltIn(kind).catch((error: unknown) => {
      // If the built-in catalogue fails, a name that can only belong to a server is looked up there.
      if (!naming.hasPrefix(name)) throw error;
      return undefined;
    });
    const ownEntry = own?.byName.get(name);
    if (ownEntry) return ownEntry;
    const owners = naming.findOwners(name).flatMap((owner) => servers.get(owner) ?? []);
    // If several servers can have the name, as servers without a prefix can, slow servers are not waited for.
    for (const planned of owners.length === 1 ? [] : owners) {
      if (mayUseSome(this.plan, planned, this.who))
        await planned.server.lists.waitIfQuick(kind, this.who.upstream);
      if (this.peek(planned, kind)?.byName.has(name) !== true) continue;
      const entry = (await this.load(planned, kind))?.byName.get(name);
      if (entry) return entry;
    }
    for (const planned of owners) {
      const loaded = await this.load(planned, kind);
      const entry = loaded?.byName.get(name);
      if (entry) return entry;
      if (isComplete(loaded) || !naming.hasPrefix(name)) continue;
      const ownName = naming.toOwnName(planned.config, name);
      if (ownName === undefined || planned.mayHave(kind, ownName))
        return { kind: 'absent', server: planned.server, name };
    }
    return undefined;
  }

  /** Without a call in progress, only the list as it was last seen is known. */
  private async listBuiltIn(kind: ListKind): Promise<ReturnType<BuiltIn['peek']> | undefined> {
    const { builtIn } = this.plan;
    const { context } = this.who;
    if (context === undefined) return builtIn?.peek(kind);
    const listing = builtIn?.list(kind, context);
    // If the gateway's own catalogue fails, a view without that catalogue is not affected.
    return this.part.hasServer(BUILT_IN) ? listing : listing?.catch(() => builtIn?.peek(kind));
  }

  private async joinAll(kind: ListKind, peek: 'peek' | undefined): Promise<ListView> {
    const { plan, part } = this;
    const resources = kind === 'skills' ? await this.join('resources', peek) : undefined;
    const servers = [...plan.servers.values()].filter(
      (one) => this.isWaitedFor(one, kind) || canTake(one, kind),
    );
    const own = await this.listBuiltIn(kind);
    const joinParts = (parts: readonly (PreparedList | undefined)[]) =>
      part.joinLists(
        kind,
        [own, ...parts].map((one) => one?.entries ?? NOTHING),
        resources,
      );
    if (peek) return { ...joinParts(servers.map((one) => this.peek(one, kind))), ...NOT_KEPT };
    const loaded = await Promise.all(
      servers.map((one) => {
        const loading = this.load(one, kind);
        if (this.isWaitedFor(one, kind)) return loading;
        // On /mcp, names of other servers may take precedence over those of this part's servers. So the others are loaded as well,
        // but not waited for.
        loading.catch(() => {});
        return this.peek(one, kind);
      }),
    );
    const cache = part.hasServer(BUILT_IN) ? own?.cache : undefined;
    const chosen = servers
      .map((planned, at) => ({ planned, loaded: loaded[at] }))
      .filter(({ planned }) => part.hasServer(planned.config.name));
    // A caller who may not use anything on a server does not learn whether it is running.
    const usable = chosen.filter(({ planned }) => mayUseSome(plan, planned, this.who));
    return {
      ...joinParts(loaded),
      ttlMs: Math.min(
        MAX_TTL_MS,
        resources?.ttlMs ?? MAX_TTL_MS,
        cache?.ttlMs ?? MAX_TTL_MS,
        ...usable.map((one) => one.loaded?.ttlMs ?? SHORT_TTL_MS),
      ),
      isPersonal:
        resources?.isPersonal === true ||
        cache?.scope === 'private' ||
        chosen.some(({ planned }) => planned.server.isPersonal),
      hasAllServers:
        resources?.hasAllServers !== false && usable.every((one) => one.loaded !== undefined),
    };
  }

  /** Rules about a URI apply to the server that has the URI on /mcp, which must be known before the rules are evaluated. */
  private isWaitedFor({ config }: PlannedServer, kind: ListKind): boolean {
    return (
      this.part.hasServer(config.name) ||
      (LIST_KINDS[kind].ruled === 'resource' && this.plan.policies.dependOnCaller)
    );
  }

  // Resources.

  /** Finds the resource or skill file on the server that lists it, if that server is known. */
  async findKnownResource(uri: string): Promise<FoundResource | undefined> {
    const listed = findIn(await this.join('resources', 'peek'), uri);
    if (listed) return toResource(listed, uri);
    return findSkillFile((await this.join('skills', 'peek')).entries, uri, 'joined');
  }

  /**
   * If a server is known to list the resource, the resource can be read without waiting for other servers. All other resources are
   * found by `findUnlisted`.
   */
  async findResource(uri: string): Promise<FoundResource | undefined> {
    const known = await this.findKnownResource(uri);
    if (known) return known;
    // A `ui://` URI names its server, so there is no need to wait for another.
    if (isAppUri(uri)) return this.findUnlisted(uri);
    const listed = findIn(await this.join('resources'), uri);
    if (listed) return toResource(listed, uri);
    const file = findSkillFile((await this.join('skills')).entries, uri, 'joined');
    return file ?? this.findUnlisted(uri);
  }

  /**
   * Finds the server that used to list the URI; otherwise the server with a matching template, or with a skill whose folder
   * contains the URI.
   */
  async findUnlisted(uri: string): Promise<FoundResource | undefined> {
    if (isAppUri(uri)) return this.findApp(uri);
    const { upstream } = this.who;
    const servers = [...this.plan.servers.values()];
    const former = servers.find(({ server }) => server.lists.hadResource(uri, upstream));
    if (former) return { server: former.server.name, ownUri: uri, uri, annotations: {} };
    // A URI of the form `<server>+<uri>` belongs to that server alone if it lists or used to list `<uri>`, whatever templates say.
    const isNamedFor = (planned: PlannedServer): boolean => {
      const { name, lists } = planned.server;
      const ownUri = toOwnUri(name, uri);
      if (ownUri === uri) return false;
      const isListed = this.peek(planned, 'resources')?.byOwnName.has(ownUri) === true;
      return isListed || lists.hadResource(ownUri, upstream);
    };
    if (servers.some(isNamedFor)) return undefined;
    const fitting = findTemplate((await this.join('templates')).entries, uri);
    if (fitting) return toResource(fitting, uri);
    return findInSkillFolder((await this.join('skills')).entries, uri, 'joined');
  }

  /** §30.1: a server does not have to list the apps that its tools name. */
  private async findApp(uri: string): Promise<FoundResource | undefined> {
    const { server: named = BUILT_IN, ownUri = uri } = readSharedUri(uri) ?? {};
    const planned = this.plan.servers.get(named);
    if (planned !== undefined) {
      const annotations = await this.findAnnotations(planned, ownUri);
      return { server: named, ownUri, uri, annotations: annotations ?? {} };
    }
    // A `ui://` URI belongs to no server that it does not name, whatever the templates of servers say.
    const { entries } = await this.join('templates');
    const fitting = findTemplate(
      entries.filter(({ server }) => server === BUILT_IN),
      uri,
    );
    return fitting && toResource(fitting, uri);
  }

  /** Undefined if the server neither lists the URI nor has a matching template. */
  async findAnnotations(
    planned: PlannedServer,
    ownUri: string,
  ): Promise<Entry['annotations'] | undefined> {
    const { name, lists } = planned.server;
    const listed = await this.load(planned, 'resources');
    const entry = listed?.byOwnName.get(ownUri);
    if (entry) return entry.annotations;
    if (lists.hadResource(ownUri, this.who.upstream)) return {};
    const offered = await this.load(planned, 'templates');
    return offered && findTemplate(offered.entries, toSharedUri(name, ownUri))?.annotations;
  }
}

/**
 * True for kinds whose items are called by a name that comes from their server. Items of the other kinds are found by URI, which
 * can be arbitrary.
 */
export const isCalled = (kind: ListKind): boolean => kind !== 'templates' && kind !== 'skills';

/**
 * True if a name that is not in the list does not exist. Otherwise the server may not have listed its entries yet, or not for this
 * caller.
 */
export const isComplete = (loaded: PreparedList | undefined): boolean =>
  loaded !== undefined && !loaded.needsLogin;

/** Names of servers cannot collide if every server has a prefix. */
const canTake = ({ config }: PlannedServer, kind: ListKind): boolean =>
  LIST_KINDS[kind].ruled === 'resource' || config.prefix === '';

export function findIn({ entries, positions }: JoinedList, name: string): Entry | undefined {
  const position = positions.get(name);
  return position === undefined ? undefined : entries[position];
}

/** `uri` is the entry's own URI or matches its template, so both begin the same way. */
function toResource({ server, name, ownName, annotations }: Entry, uri: string): FoundResource {
  const isRenamed = server !== BUILT_IN && name !== ownName;
  return { server, uri, ownUri: isRenamed ? toOwnUri(server, uri) : uri, annotations };
}
