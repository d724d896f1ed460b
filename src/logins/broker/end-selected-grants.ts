// §5.11: many logins end at once: those of a user, those by a client, those of a session at the provider, or all.

import { type Clock, createTurns } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import type { Grant } from '../grants/grant.ts';
import type { GrantOwner, Grants } from '../grants/grants.ts';
import { hashUser } from '../grants/token-codec.ts';
import type { EndConnections } from './end-connections.ts';
import type { EndGrant } from './end-grant.ts';
import type { EndedBy, GrantSelection, Logouts } from './logouts.ts';
import type { EndedLogin, TellProvider } from './tell-provider.ts';

/**
 * Ends those that are there, and what is under way to become one (`Logouts`). The provider is told of them afterwards, and
 * nobody waits for it: it may be down, and there may be thousands. That one cannot be ended stops no other.
 */
export type EndSelectedGrants = (
  selection: GrantSelection,
  by: EndedBy,
  noteEnd: (grant: Grant) => void,
) => Promise<EndedSelection>;

export interface EndedSelection {
  /** How many. */
  readonly ended: number;
  /** How many are still there, because the store failed. */
  readonly failed: number;
  /** Of what begins after it. */
  readonly logoutMark: number;
}

export interface EndSelectedGrantsDeps {
  readonly grants: Pick<Grants, 'list' | 'listIds'>;
  readonly endHere: EndGrant;
  readonly logouts: Pick<Logouts, 'note'>;
  readonly tellProviderInTurn: TellProvider;
  /** Undefined without CONNECTIONS_END_WITH_LOGOUT. */
  readonly endConnections: EndConnections | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

const PAGE = 100;
/** A grant that is refreshed while the list is read moves to its front: it is read again until it has none. */
const MAX_PASSES = 10;
/** So many wait for their turn at a time, so that there is room for others. */
const MAX_TOLD = 100;

export function createEndSelectedGrants(deps: EndSelectedGrantsDeps): EndSelectedGrants {
  const { grants, endHere, logouts, tellProviderInTurn, endConnections, clock, log } = deps;

  async function listIds(selection: GrantSelection): Promise<readonly string[]> {
    const owner = findOwner(selection);
    const belongs = createFilter(selection);
    // Whose it is has to be read of each; else those end, too, that cannot be read here.
    const readPage = belongs === undefined ? grants.listIds : createReadPageOf(belongs);
    const turns = createTurns(clock);
    const ids: string[] = [];
    let page = await readPage({ from: undefined, limit: PAGE }, owner);
    for (;;) {
      ids.push(...page.items);
      if (page.next === undefined) return ids;
      if (turns.isOver()) await turns.next();
      page = await readPage({ from: page.next, limit: PAGE }, owner);
    }
  }

  const createReadPageOf =
    (belongs: Belongs): Grants['listIds'] =>
    async (request, owner) => {
      const { items, next } = await grants.list(request, owner);
      return { items: items.filter(belongs).map(({ id }) => id), next };
    };

  async function tellOfAll(ended: readonly EndedLogin[]): Promise<void> {
    for (let at = 0; at < ended.length; at += MAX_TOLD) {
      await Promise.all(ended.slice(at, at + MAX_TOLD).map(tellProviderInTurn));
    }
  }

  return async function endSelectedGrants(selection, by, noteEnd) {
    // Before the list is read: what is not in it yet finds the note.
    const logoutMark = await logouts.note(selection, by);
    // Not their claims: there may be all that the gateway has, and the provider may be slow.
    const ended: EndedLogin[] = [];
    const failures = new Map<string, unknown>();
    try {
      for (let pass = 0; pass < MAX_PASSES; pass += 1) {
        failures.clear();
        const endedBefore = ended.length;
        for (const id of await listIds(selection)) {
          const grant = await endHere(id, by).catch((cause) => void failures.set(id, cause));
          if (!grant) continue;
          ended.push({ user: grant.user, provider: grant.provider });
          noteEnd(grant);
        }
        if (ended.length === endedBefore) break;
      }
    } finally {
      // Also of those that had ended when the store failed.
      void tellOfAll(ended);
      endConnections?.(selection, ended);
    }
    for (const [grant, cause] of [...failures].slice(0, MAX_LOGGED)) {
      log.error('A login could not be ended.', { grant, cause });
    }
    return { ended: ended.length, failed: failures.size, logoutMark };
  };
}

/** The store fails for all of them by the same reason. */
const MAX_LOGGED = 10;

/** In whose list they are. */
function findOwner(selection: GrantSelection): GrantOwner {
  const { kind } = selection;
  return kind === 'user' || kind === 'session' ? selection : { kind: 'all' };
}

type Belongs = (grant: Grant) => boolean;

/** Undefined for all of the list. */
function createFilter(selection: GrantSelection): Belongs | undefined {
  if (selection.kind === 'session') {
    const { session, user } = selection;
    // Another session may have taken its place meanwhile, and the list have kept it.
    return (grant) =>
      grant.sid === session.sid && (user === undefined || hashUser(grant.user) === hashUser(user));
  }
  const client = selection.kind === 'all' ? undefined : selection.client;
  return client === undefined ? undefined : (grant) => grant.client.id === client;
}
