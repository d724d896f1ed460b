// §5.11: many logins end at once: those of a user, those by a client, or all.
import type { Grant } from '../../grants/grant.ts';
import type { Grants } from '../../grants/grants.ts';
import { type Clock, createTurns } from '../../platform/clock.ts';
import type { TellProvider } from './end-grant.ts';

/** `user` is the `sub` of a user of `OIDC_ISSUER`, `client` an OAuth client ID. */
export type GrantSelection =
  | { readonly kind: 'user'; readonly user: string; readonly client: string | undefined }
  | { readonly kind: 'client'; readonly client: string }
  | { readonly kind: 'all' };

/**
 * Ends those that are there, and those that come meanwhile; resolves to how many. The provider is told of them
 * afterwards, and nobody waits for it: it may be down, and there may be thousands.
 */
export type EndSelectedGrants = (
  selection: GrantSelection,
  noteEnd: (grant: Grant) => void,
) => Promise<number>;

export interface EndSelectedGrantsDeps {
  readonly grants: Pick<Grants, 'end' | 'list' | 'listOfUser'>;
  readonly tellProvider: TellProvider;
  /** `OIDC_ISSUER`. */
  readonly issuer: string;
  readonly clock: Clock;
}

const PAGE = 100;
/** A grant that is refreshed while the list is read moves to its front: it is read again until it has none. */
const MAX_PASSES = 10;
/** So many are told to the provider at a time. */
const MAX_TOLD = 8;

export function createEndSelectedGrants(deps: EndSelectedGrantsDeps): EndSelectedGrants {
  const { grants, tellProvider, issuer, clock } = deps;

  async function listIds(selection: GrantSelection): Promise<readonly string[]> {
    const client = selection.kind === 'all' ? undefined : selection.client;
    const isMeant = (grant: Grant) => client === undefined || grant.client.id === client;
    if (selection.kind === 'user') {
      const found = await grants.listOfUser({ issuer, sub: selection.user });
      return found.filter(isMeant).map(({ id }) => id);
    }
    const turns = createTurns(clock);
    const ids: string[] = [];
    let page = await grants.list({ from: undefined, limit: PAGE });
    for (;;) {
      for (const grant of page.items) if (isMeant(grant)) ids.push(grant.id);
      if (page.next === undefined) return ids;
      if (turns.isOver()) await turns.next();
      page = await grants.list({ from: page.next, limit: PAGE });
    }
  }

  async function tellOfAll(ended: readonly Grant[]): Promise<void> {
    for (let at = 0; at < ended.length; at += MAX_TOLD) {
      // What the store cannot say of one is no reason to keep the others from the provider.
      await Promise.allSettled(ended.slice(at, at + MAX_TOLD).map(tellProvider));
    }
  }

  return async function endSelectedGrants(selection, noteEnd) {
    const ended: Grant[] = [];
    try {
      for (let pass = 0; pass < MAX_PASSES; pass += 1) {
        const ids = await listIds(selection);
        if (ids.length === 0) break;
        for (const id of ids) {
          const grant = await grants.end(id);
          if (grant === undefined) continue;
          ended.push(grant);
          noteEnd(grant);
        }
      }
    } finally {
      // Also of those that had ended when the store failed.
      void tellOfAll(ended);
    }
    return ended.length;
  };
}
