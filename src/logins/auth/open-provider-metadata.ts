// What the provider says of itself, or what is known of one that says nothing.
import type { ProviderConfig } from '../../config/groups/provider.ts';
import type { ProviderLogin } from '../../config/provider-profiles.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { buildGithubUrls } from './github-urls.ts';
import { createProviderMetadata, type ProviderMetadata } from './provider-metadata.ts';

export const openProviderMetadata = (
  runtime: Pick<Runtime, 'fetch' | 'clock' | 'log'>,
  { issuer, login }: Pick<ProviderConfig, 'issuer' | 'login'>,
): ProviderMetadata => METADATA[login](runtime, issuer);

const METADATA: { readonly [Login in ProviderLogin]: typeof createProviderMetadata } = {
  openid: createProviderMetadata,
  github: createGithubMetadata,
};

function createGithubMetadata(_runtime: unknown, issuer: string): ProviderMetadata {
  const { authorizationUrl, tokenUrl, apiUrl, redirectIssuer } = buildGithubUrls(issuer);
  return {
    issuer,
    redirectIssuer,
    isFixed: true,
    get: async () => ({
      issuer,
      authorization_endpoint: authorizationUrl,
      token_endpoint: tokenUrl,
      userinfo_endpoint: `${apiUrl}/user`,
    }),
  };
}
