// §18.6: `forward`: sends the caller's own token to a server that is in its audience.

import { CredentialError, type UpstreamCaller } from '../../mcp/upstream/upstream.ts';
import { isSafeForTokens } from '../../platform/address.ts';
import {
  AUDIENCE,
  defineCredentialType,
  describeMissingToken,
  NEEDS_LOGIN,
} from './credential-type.ts';

export interface ForwardAuth {
  readonly type: 'forward';
  readonly audience: string;
}

export const forward = defineCredentialType<ForwardAuth>({
  type: 'forward',
  summary: 'the caller’s own token.',
  members: [AUDIENCE.member],
  required: [AUDIENCE.member],
  whyNoOthers: 'the token is passed on as it is',
  read(members) {
    const audience = AUDIENCE.read(members);
    return audience === undefined ? undefined : { type: 'forward', audience };
  },
  requirements: [NEEDS_LOGIN],
  isOfCaller: true,
  needsUser: true,
  passesTokensOn: true,
  open: (_runtime, { getProviderToken }) => ({
    openServer({ url }, { audience }) {
      const isSafe = isSafeForTokens(url);
      function getToken({ user }: UpstreamCaller) {
        if (user === undefined) return undefined;
        if (!isSafe)
          throw new CredentialError(
            'tokens are forwarded by https only, and its address has none; only the operator of this service can change that',
          );
        // The audience of a grant's provider token is not checked here: only the server that receives it has to be able to read it.
        if (user.grant !== undefined)
          return getProviderToken(user).then((token) => {
            if (token === undefined) throw new CredentialError(describeMissingToken(user));
            return token;
          });
        const { aud } = user.claims;
        const isForServer = Array.isArray(aud) ? aud.includes(audience) : aud === audience;
        if (!isForServer)
          throw new CredentialError(
            'the token of this login was not made for it; only the operator of this service can change that',
          );
        return user.token;
      }

      return { getToken };
    },
  }),
});
