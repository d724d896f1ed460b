// What the provider says of itself, or what is known of one that says nothing.
import type { ProviderConfig } from '../config/groups/provider.ts';
import type { ProviderLogin } from '../config/provider-profiles.ts';
import { buildGithubUrls } from './github-urls.ts';
import {
  createProviderMetadata,
  type ProviderMetadata,
  type ProviderMetadataDeps,
} from './provider-metadata.ts';

export const openProviderMetadata = (
  { issuer, login }: Pick<ProviderConfig, 'issuer' | 'login'>,
  deps: Omit<ProviderMetadataDeps, 'issuer'>,
): ProviderMetadata => METADATA[login]({ ...deps, issuer });

const METADATA: {
  readonly [Login in ProviderLogin]: (deps: ProviderMetadataDeps) => ProviderMetadata;
} = { openid: createProviderMetadata, github: createGithubMetadata };

function createGithubMetadata({ issuer }: Pick<ProviderMetadataDeps, 'issuer'>): ProviderMetadata {
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
