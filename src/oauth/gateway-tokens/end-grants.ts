// §5.11: whoever ends a grant ends the provider's tokens of it, too.
import type { Grant } from '../../grants/grant.ts';
import type { Grants } from '../../grants/grants.ts';
import { type Clock, createTurns } from '../../platform/clock.ts';
import type { ProviderLogins } from './provider-login.ts';

/** `user` is the `sub` of a user of `OIDC_ISSUER`, `client` an OAuth client ID. */
export type GrantSelection =
  | { readonly kind: 'user'; readonly user: string; readonly client: string | undefined }
  | { readonly kind: 'client'; readonly client: string }
  | { readonly kind: 'all' };

export interface EndGrants {
  /** Undefined where there is none. The provider was told then, whatever it says. */
  endOne(id: string): Promise<Grant | undefined>;
  /**
   * Ends those that are there, and those that come meanwhile; resolves to how many. The provider is told of them
   * afterwards, and nobody waits for it: it may be down, and there may be thousands.
   */
  endAll(selection: GrantSelection, noteEnd: (grant: Grant) => void): Promise<number>;
}

export interface EndGrantsDeps {
  readonly grants: Pick<Grants, 'end' | 'list' | 'listOfUser'>;
  readonly providerLogins: Pick<ProviderLogins, 'revoke'>;
  /** `OIDC_ISSUER`. */
  readonly issuer: string;
  readonly clock: Clock;
}

const PAGE = 100;
/** A grant that is refreshed while the list is read moves to its front: it is read again until it has none. */
const MAX_PASSES = 10;
/** So many are told to the provider at a time. */
const MAX_TOLD = 8;

export function createEndGrants(deps: EndGrantsDeps): EndGrants {
  const { grants, providerLogins, issuer, clock } = deps;

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

  async function tellProvider(ended: readonly Grant[]): Promise<void> {
    for (let at = 0; at < ended.length; at += MAX_TOLD) {
      const some = ended.slice(at, at + MAX_TOLD);
      await Promise.all(some.map(({ provider }) => providerLogins.revoke(provider)));
    }
  }

  return {
    async endOne(id) {
      const ended = await grants.end(id);
      if (ended !== undefined) await providerLogins.revoke(ended.provider);
      return ended;
    },
    async endAll(selection, noteEnd) {
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
        void tellProvider(ended);
      }
      return ended.length;
    },
  };
}
