// §5.11: a login ends, whoever says so: here at once, and at the provider as far as that can be told.
import type { Grant } from '../../grants/grant.ts';
import type { Grants } from '../../grants/grants.ts';
import type { ProviderLogins } from './provider-login.ts';

/** Resolves to what has ended; undefined where another was faster, or there was none. */
export type EndGrant = (id: string) => Promise<Grant | undefined>;

/** Of a login that has ended here. Never says what came of it. */
export type TellProvider = (ended: Grant) => Promise<void>;

export interface TellProviderDeps {
  readonly grants: Pick<Grants, 'listOfUser'>;
  readonly providerLogins: Pick<ProviderLogins, 'revoke'>;
  /** The provider takes the end of one login for the end of all that its user has by our client. */
  readonly endsAllOfUser: boolean;
}

export const createTellProvider = ({
  grants,
  providerLogins,
  endsAllOfUser,
}: TellProviderDeps): TellProvider =>
  async function tellProvider({ user, provider }) {
    // The user's other clients must not be logged out by that.
    const isShared = endsAllOfUser && (await grants.listOfUser(user)).length > 0;
    if (!isShared) await providerLogins.revoke(provider);
  };

export interface EndGrantDeps {
  readonly grants: Pick<Grants, 'end'>;
  readonly tellProvider: TellProvider;
}

export const createEndGrant = ({ grants, tellProvider }: EndGrantDeps): EndGrant =>
  async function endGrant(id) {
    const ended = await grants.end(id);
    if (ended !== undefined) await tellProvider(ended);
    return ended;
  };
