// RFC 7009: what the provider gave for a login is revoked there, as far as it can be.

import type { ProviderClientConfig } from '../../config/groups/provider.ts';
import type { ProviderEndpoints } from '../auth/provider-metadata.ts';
import type { ProviderTokens } from '../grants/grant.ts';
import { authenticateClient, type ProviderApi } from './provider-api.ts';

/** Never rejects: what is revoked here has ended here, whatever the provider says. */
export type RevokeTokens = (tokens: ProviderTokens) => Promise<void>;

export interface RevokeTokensDeps {
  readonly providerClient: ProviderClientConfig;
  /** Of its own: a revocation endpoint that stalls must keep nobody from logging in. */
  readonly api: ProviderApi;
  readonly endpoints: Pick<ProviderEndpoints, 'findRevocationUrl'>;
}

export const createRevokeTokens = ({
  providerClient,
  api,
  endpoints,
}: RevokeTokensDeps): RevokeTokens =>
  async function revokeTokens({ refreshToken, accessToken }) {
    const token = refreshToken ?? accessToken;
    if (token === undefined) return;
    try {
      const url = await endpoints.findRevocationUrl();
      const hint = refreshToken === undefined ? 'access_token' : 'refresh_token';
      const form = [
        ['token', token],
        ['token_type_hint', hint],
      ] as const;
      await api.post(authenticateClient(providerClient, { url, form }));
    } catch {
      // It may have no such endpoint, or be down: the token dies of age.
    }
  };
