// §2.1: names and compares owners of records. A `sub` is unique only within its issuer (OpenID Connect Core §5.7).
import { hashSha256 } from '../platform/ids.ts';
import type { Owner, SessionRecord } from './store.ts';

/** The start of names of other issuers' users. */
const OTHER_ISSUER = '["';

/** Names a user uniquely, in memory, and hashed in keys. No `sub` can collide with another issuer's user. */
export const nameOwner = ({ sub, issuer }: Owner): string =>
  issuer === undefined && !sub.startsWith(OTHER_ISSUER) ? sub : JSON.stringify([issuer ?? '', sub]);

/** Hashes the name of an owner for keys, whose size is limited. */
export const hashOwner = (owner: Owner): string => hashSha256(nameOwner(owner));

export type OwnedRecord = Pick<SessionRecord, 'userId' | 'userIssuer'>;

/** Undefined for a record without an owner. */
export const readOwner = ({ userId, userIssuer }: OwnedRecord): Owner | undefined =>
  userId === undefined ? undefined : { sub: userId, issuer: userIssuer };

/** Leaves out the issuer if it is the default one (`OIDC_ISSUER`). */
export const withoutDefault = (owner: Owner, defaultIssuer: string | undefined): Owner =>
  owner.issuer === defaultIssuer ? { sub: owner.sub } : owner;

/** Without authentication neither sessions nor requests have an owner. */
export const isOwnedBy = ({ userId, userIssuer }: OwnedRecord, owner: Owner | undefined): boolean =>
  userId === owner?.sub && userIssuer === owner?.issuer;
