// RFC 7009: that a login has ended here, or came to nothing, is told to the provider, as far as that can be told.

import { createWorkQueue } from '../../platform/work-queue.ts';
import type { Grant, UserIdentity } from '../grants/grant.ts';
import type { Grants } from '../grants/grants.ts';
import type { ProviderLogins } from './provider-login.ts';

/** Never rejects, and never says what came of it. */
export type TellProvider = (ended: EndedLogin) => Promise<void>;

export interface EndedLogin extends Pick<Grant, 'provider'> {
  /** Undefined where it never became known who logged in. */
  readonly user: UserIdentity | undefined;
}

export interface TellProviderDeps {
  readonly grants: Pick<Grants, 'listOfUser'>;
  readonly providerLogins: Pick<ProviderLogins, 'revoke'>;
  /** `OIDC_ISSUER`. */
  readonly issuer: string;
  /** The provider takes the end of one login for the end of all that its user has by our client. */
  readonly endsAllOfUser: boolean;
}

export const createTellProvider = ({
  grants,
  providerLogins,
  issuer,
  endsAllOfUser,
}: TellProviderDeps): TellProvider => {
  /** The user's other clients must not be logged out by it. */
  const isShared = async ({ user }: EndedLogin): Promise<boolean> =>
    endsAllOfUser && (user === undefined || (await grants.listOfUser(user)).length > 0);

  return async function tellProvider(ended) {
    // From before a change of OIDC_ISSUER: no provider is sent the tokens of another.
    if (ended.user !== undefined && ended.user.issuer !== issuer) return;
    // What cannot be looked up may be shared. Its tokens die of age.
    if (await isShared(ended).catch(() => true)) return;
    await providerLogins.revoke(ended.provider);
  };
};

/** Of those that may be under way, so that there is room for who ends a login and waits. */
const MAX_TOLD = 8;
/** There is no end to logins that are refused; tokens of those for which there is no room here die of age. */
const MAX_WAITING = 10_000;

/** In turn, for what nobody waits for: there may be thousands, and the provider may be slow. */
export function createTellInTurn(tellProvider: TellProvider): TellProvider {
  const queue = createWorkQueue({
    maxRunning: MAX_TOLD,
    maxWaiting: MAX_WAITING,
    createRefusal: () => new Error('Too many logins have ended that the provider was not told of'),
  });
  return ({ user, provider }) => queue.run(() => tellProvider({ user, provider })).catch(() => {});
}
