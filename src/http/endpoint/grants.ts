// Logins of users by clients, as a port for other features; implemented by logins.

import type { JsonObject } from '../../platform/json.ts';
import type { PageRequest, StoredPage } from '../../store/page.ts';
import type { NamedClient } from './display-name.ts';

/** A client that acts on behalf of a user. */
export interface UserGrant {
  readonly user: { readonly issuer: string; readonly sub: string };
  readonly client: NamedClient;
  /** All claims about the user from the provider. */
  readonly claims: JsonObject;
}

export interface GrantReader<Grant extends UserGrant = UserGrant> {
  /** The grant with the latest expiry comes first. */
  list(request: PageRequest, owner: { readonly kind: 'all' }): Promise<StoredPage<Grant>>;
  listOfUser(user: UserGrant['user']): Promise<readonly Grant[]>;
}

/** Grants that ended on any replica: whatever their clients have open is closed. */
export interface EndedGrants {
  listen(listener: (grantId: string) => void): void;
  /** True if the grant ended recently: for requests that were admitted before that, and are about to open a stream. */
  hasEnded(grantId: string): boolean;
}
