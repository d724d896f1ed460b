// §18.5: which OAuth client a token was made for.
import { readClaimedClient, type UserContext } from '../../http/endpoint/message.ts';

/** Undefined where it is not known: no rule about clients holds then. */
export type ClientOf = (caller: { readonly user: UserContext | undefined }) => string | undefined;

/**
 * `ownClientId` is the client that the gateway is at the provider in broker mode: a token of the provider that was made for it does
 * not say who got it.
 */
export const createClientOf = (ownClientId: string | undefined): ClientOf =>
  function clientOf({ user }) {
    if (user === undefined) return undefined;
    if (user.grant !== undefined) return user.grant.clientId;
    const claimed = readClaimedClient(user.claims);
    return claimed === ownClientId ? undefined : claimed;
  };
