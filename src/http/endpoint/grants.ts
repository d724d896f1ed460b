// Logins of users by clients, as features beside logins see them: a port that logins implement.

import type { JsonObject } from '../../platform/json.ts';
import type { PageRequest, StoredPage } from '../../store/page.ts';

/** A client that acts for a user. */
export interface UserGrant {
  readonly user: { readonly issuer: string; readonly sub: string };
  readonly client: {
    readonly id: string;
    readonly name?: string | undefined;
    readonly redirectHost?: string | undefined;
  };
  /** All that the provider said of the user. */
  readonly claims: JsonObject;
}

export interface GrantReader<Grant extends UserGrant = UserGrant> {
  /** The one that ends last first. */
  list(request: PageRequest, owner: { readonly kind: 'all' }): Promise<StoredPage<Grant>>;
  listOfUser(user: UserGrant['user']): Promise<readonly Grant[]>;
}

/** Grants that have ended at any replica: what their clients have open ends with them. */
export interface EndedGrants {
  listen(listener: (grantId: string) => void): void;
  /** Tells whether it was heard of lately: for what was let in before that, and is about to be open. */
  hasEnded(grantId: string): boolean;
}
