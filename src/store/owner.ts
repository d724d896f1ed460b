// §2.1: whose something in the store is. A `sub` alone does not say it: each issuer has users of its own (OpenID Connect
// Core §5.7).
import { hashSha256 } from '../platform/ids.ts';
import type { Owner, SessionRecord } from './store.ts';

/** The beginning of the names of other issuers' users. */
const OTHER_ISSUER = '["';

/** Tells users apart, in memory, and hashed in keys. No `sub` can be chosen so that it reads like another issuer's user. */
export const nameOwner = ({ sub, issuer }: Owner): string =>
  issuer === undefined && !sub.startsWith(OTHER_ISSUER) ? sub : JSON.stringify([issuer ?? '', sub]);

/** For keys, which have a largest size. */
export const hashOwner = (owner: Owner): string => hashSha256(nameOwner(owner));

export type OwnedRecord = Pick<SessionRecord, 'userId' | 'userIssuer'>;

/** Undefined for what is nobody's. */
export const readOwner = ({ userId, userIssuer }: OwnedRecord): Owner | undefined =>
  userId === undefined ? undefined : { sub: userId, issuer: userIssuer };

/** The issuer is left out where it is the default one (`OIDC_ISSUER`). */
export const withoutDefault = (owner: Owner, defaultIssuer: string | undefined): Owner =>
  owner.issuer === defaultIssuer ? { sub: owner.sub } : owner;

/** Without authentication sessions are nobody's, as requests are. */
export const isOwnedBy = ({ userId, userIssuer }: OwnedRecord, owner: Owner | undefined): boolean =>
  userId === owner?.sub && userIssuer === owner?.issuer;
