// GitHub's way to revoke a token, which is not RFC 7009.
// https://docs.github.com/rest/apps/oauth-applications#delete-an-app-token
import type { ProviderClientConfig } from '../../../config/groups/provider.ts';
import { createBasicAuthorization } from '../../../http/oauth-client/client-authentication.ts';
import { type RevokeTokens, requireClientId } from '../../../http/oauth-client/provider-api.ts';
import { buildGithubUrls } from '../../../http/oauth-client/provider-metadata.ts';
import { type Fetch, fetchWithLimits } from '../../../platform/fetch-with-limits.ts';

export interface RevokeGithubTokenDeps {
  /** `GITHUB_URL`. */
  readonly issuer: string;
  readonly providerClient: ProviderClientConfig;
  readonly fetch: Fetch;
}

const LIMITS = { timeoutMs: 10_000, maxBytes: 65_536 };

export function createRevokeGithubToken(deps: RevokeGithubTokenDeps): RevokeTokens {
  const { issuer, providerClient, fetch } = deps;
  const { apiUrl } = buildGithubUrls(issuer);

  return async function revokeGithubToken({ accessToken }) {
    if (accessToken === undefined) return;
    try {
      const id = requireClientId(providerClient);
      const url = `${apiUrl}/applications/${encodeURIComponent(id)}/token`;
      const headers = {
        Accept: 'application/vnd.github+json',
        Authorization: createBasicAuthorization(id, providerClient.secret ?? ''),
        'Content-Type': 'application/json',
        'User-Agent': 'postern',
      };
      const body = JSON.stringify({ access_token: accessToken });
      await fetchWithLimits(fetch, url, { method: 'DELETE', headers, body }, LIMITS);
    } catch {
      // It may be down: the user can still revoke the app in the settings of GitHub.
    }
  };
}
