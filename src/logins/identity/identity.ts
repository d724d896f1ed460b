// §13.2: who somebody is, as the provider says it; and what an answer of the provider has to agree with.

import type { JsonObject } from '../../platform/json.ts';
import type { UserIdentity } from '../grants/grant.ts';

/** Whom the provider says somebody is. */
export interface Identity {
  readonly user: UserIdentity;
  /** All that it said, at most 16 KiB; `groups` is that of OIDC_GROUPS_CLAIM. */
  readonly claims: JsonObject;
  /** Those that the userinfo endpoint alone gave. */
  readonly userinfoClaims: readonly string[];
  /** OpenID Connect Back-Channel Logout §2.1. */
  readonly sid: string | undefined;
}

/** What an answer has to agree with. */
export interface ExpectedIdentity {
  /** OpenID Connect Core §3.1.3.7: of the login that the code is for. */
  readonly nonce: string | undefined;
  /** OpenID Connect Core §12.2: of whom it must be, whose claims stay where the answer cannot give them. */
  readonly earlier: EarlierIdentity | undefined;
  /** The answer to a refresh of which nobody knows whose it is: userinfo says it where there is no ID token. */
  readonly mayLackIdToken?: boolean;
  /** It came of no request: the access token is one that the provider gave long ago, and may have been revoked. */
  readonly isHeldToken?: boolean;
}

export interface EarlierIdentity extends Pick<Identity, 'user' | 'claims'> {
  /** Without it all claims are taken for those of the ID token. */
  readonly userinfoClaims?: readonly string[] | undefined;
}
