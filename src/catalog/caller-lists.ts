// §18.2: the lists of a plan's servers as one caller gets them, joined for `/mcp` or for a view of it, and URIs that no list has.

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
/** While a server has not listed yet. */
const SHORT_TTL_MS = 1_000;
const MAX_TTL_MS = 60_000;
/** A list at hand is only looked at: nobody may take it for complete, or keep it for others. */
const NOT_KEPT = { ttlMs: 0, isPersonal: true, hasAllServers: false };

/** One look at the lists: each is requested once. */
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

  /** `atHand`: of what servers have listed so far. */
  join(kind: ListKind, atHand?: 'atHand'): Promise<ListView> {
    const key = `${kind} ${atHand}`;
    const joining = this.joined.get(key) ?? this.joinAll(kind, atHand);
    this.joined.set(key, joining);
    return joining;
  }

  /**
   * Undefined while the server has not listed. A caller who may use nothing of the server does not wait for that: the time would
   * tell whether it runs.
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

  /** The same, as far as it is known; nothing is requested. */
  peek({ server, prepareList }: PlannedServer, kind: ListKind): PreparedList | undefined {
    const known = server.lists.peek(kind, this.who.upstream);
    return known && prepareList(known);
  }

  /** The item of this name at `/mcp`. */
  async find(kind: ListKind, name: string): Promise<FoundItem | undefined> {
    if (!isCalled(kind))
      return findIn(await this.join(kind, 'atHand'), name) ?? findIn(await this.join(kind), name);
    const { naming, servers } = this.plan;
    const own = await this.listBuiltIn(kind).catch((error: unknown) => {
      // A name that can only be a server's is looked for there if the built-in catalogue fails.
      if (!naming.hasPrefix(name)) throw error;
      return undefined;
    });
    const ownEntry = own?.byName.get(name);
    if (ownEntry) return ownEntry;
    const owners = naming.findOwners(name).flatMap((owner) => servers.get(owner) ?? []);
    // Servers that list slowly are not waited for if several can have the name, as without a prefix.
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

  /** Without a call under way, the last list is all that can be known. */
  private async listBuiltIn(kind: ListKind): Promise<ReturnType<BuiltIn['peek']> | undefined> {
    const { builtIn } = this.plan;
    const { context } = this.who;
    if (context === undefined) return builtIn?.peek(kind);
    const listing = builtIn?.list(kind, context);
    // A failure of the gateway's own catalogue does not concern a view without it.
    return this.part.hasServer(BUILT_IN) ? listing : listing?.catch(() => builtIn?.peek(kind));
  }

  private async joinAll(kind: ListKind, atHand: 'atHand' | undefined): Promise<ListView> {
    const { plan, part } = this;
    const resources = kind === 'skills' ? await this.join('resources', atHand) : undefined;
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
    if (atHand) return { ...joinParts(servers.map((one) => this.peek(one, kind))), ...NOT_KEPT };
    const loaded = await Promise.all(
      servers.map((one) => {
        const loading = this.load(one, kind);
        if (this.isWaitedFor(one, kind)) return loading;
        // Names of other servers take those of the part's servers at /mcp: they are loaded, too, but not waited for.
        loading.catch(() => {});
        return this.peek(one, kind);
      }),
    );
    const cache = part.hasServer(BUILT_IN) ? own?.cache : undefined;
    const chosen = servers
      .map((planned, at) => ({ planned, loaded: loaded[at] }))
      .filter(({ planned }) => part.hasServer(planned.config.name));
    // A caller who may use nothing of a server is not told whether it runs.
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

  /** Rules about a URI are about the server that has it at /mcp, which must be known before the rules are evaluated. */
  private isWaitedFor({ config }: PlannedServer, kind: ListKind): boolean {
    return (
      this.part.hasServer(config.name) ||
      (LIST_KINDS[kind].ruled === 'resource' && this.plan.policies.dependOnCaller)
    );
  }

  // Resources.

  /** The resource, or the file of a skill, of the server that lists it, as far as that is known. */
  async findKnownResource(uri: string): Promise<FoundResource | undefined> {
    const listed = findIn(await this.join('resources', 'atHand'), uri);
    if (listed) return toResource(listed, uri);
    return findSkillFile((await this.join('skills', 'atHand')).entries, uri, 'joined');
  }

  /** A resource that one server is known to list can be read without waiting for another. See `findUnlisted` for all others. */
  async findResource(uri: string): Promise<FoundResource | undefined> {
    const known = await this.findKnownResource(uri);
    if (known) return known;
    // A `ui://` URI names its server: no other is waited for.
    if (isAppUri(uri)) return this.findUnlisted(uri);
    const listed = findIn(await this.join('resources'), uri);
    if (listed) return toResource(listed, uri);
    const file = findSkillFile((await this.join('skills')).entries, uri, 'joined');
    return file ?? this.findUnlisted(uri);
  }

  /** Finds the server that used to list the URI, else the one whose template fits it, else the one in whose skill's folder it lies. */
  async findUnlisted(uri: string): Promise<FoundResource | undefined> {
    if (isAppUri(uri)) return this.findApp(uri);
    const { upstream } = this.who;
    const servers = [...this.plan.servers.values()];
    const former = servers.find(({ server }) => server.lists.hadResource(uri, upstream));
    if (former) return { server: former.server.name, ownUri: uri, uri, annotations: {} };
    // `<server>+<uri>`, for a URI that the server lists, or did, belongs to no other server, whatever templates say.
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

  /** §30.1: a server need not list the apps that its tools name. */
  private async findApp(uri: string): Promise<FoundResource | undefined> {
    const { server: named = BUILT_IN, ownUri = uri } = readSharedUri(uri) ?? {};
    const planned = this.plan.servers.get(named);
    if (planned !== undefined) {
      const annotations = await this.findAnnotations(planned, ownUri);
      return { server: named, ownUri, uri, annotations: annotations ?? {} };
    }
    // A `ui://` URI that does not name a server is not that server's, whatever its templates say.
    const { entries } = await this.join('templates');
    const fitting = findTemplate(
      entries.filter(({ server }) => server === BUILT_IN),
      uri,
    );
    return fitting && toResource(fitting, uri);
  }

  /** Undefined if the server neither lists the URI nor has a template that fits it. */
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

/** True for kinds that are called by a name of their server; the others are found by URIs, which may be any. */
export const isCalled = (kind: ListKind): boolean => kind !== 'templates' && kind !== 'skills';

/** True if a name that is not in the list does not exist: the server may not have listed yet, or not to this caller. */
export const isComplete = (loaded: PreparedList | undefined): boolean =>
  loaded !== undefined && !loaded.needsLogin;

/** No server takes the name of another if every server has its prefix. */
const canTake = ({ config }: PlannedServer, kind: ListKind): boolean =>
  LIST_KINDS[kind].ruled === 'resource' || config.prefix === '';

export function findIn({ entries, positions }: JoinedList, name: string): Entry | undefined {
  const position = positions.get(name);
  return position === undefined ? undefined : entries[position];
}

/** `uri` is that of the entry, or one that fits its template: then both begin alike. */
function toResource({ server, name, ownName, annotations }: Entry, uri: string): FoundResource {
  const isRenamed = server !== BUILT_IN && name !== ownName;
  return { server, uri, ownUri: isRenamed ? toOwnUri(server, uri) : uri, annotations };
}
