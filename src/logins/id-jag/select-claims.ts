// §13.2: what is kept of an assertion about the user: the same as of an ID token.
import { GatewayError } from '../../errors/gateway-error.ts';
import type { JsonObject } from '../../platform/json.ts';
import { readGroups } from '../identity/groups.ts';
import { checkClaimSize } from '../identity/identity.ts';
import { failMember } from './assertion.ts';

/** `groups` is that of OIDC_GROUPS_CLAIM. @throws GatewayError `unusable_assertion` where there are too many. */
export function selectClaims(asserted: JsonObject, groupsClaim: string): JsonObject {
  // Where claims are to be had elsewhere there may be an access token beside the address.
  const { _claim_sources: _, groups: __, ...rest } = asserted;
  const groups = readGroups(asserted, groupsClaim);
  const claims = groups === undefined ? rest : { ...rest, groups };
  try {
    checkClaimSize(claims);
  } catch (thrown) {
    if (!(thrown instanceof GatewayError)) throw thrown;
    failMember('claims', thrown.message, 'claims of 16 KiB, and of 32 levels, at most');
  }
  return claims;
}
