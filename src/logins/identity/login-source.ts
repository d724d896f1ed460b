// What differs between providers that say who logs in by an ID token, and one that has an API for it.

import type { BrokerConfig } from '../../config/groups/oauth.ts';
import type { ProviderLogin } from '../../config/provider-profiles.ts';
import {
  createProviderApi,
  createRevokeTokens,
  type RevokeTokens,
} from '../../http/oauth-client/provider-api.ts';
import type {
  ProviderEndpoints,
  ProviderMetadata,
} from '../../http/oauth-client/provider-metadata.ts';
import type { Fetch } from '../../platform/fetch-with-limits.ts';
import type { Log } from '../../platform/log.ts';
import type { IdTokenVerifier } from '../auth/id-token.ts';
import { createReadGithubIdentity } from './github/read-github-identity.ts';
import { createRevokeGithubToken } from './github/revoke-github-token.ts';
import { createReadIdentity, type ReadIdentity } from './read-identity.ts';

/** How who logged in is found out, and how the provider is told that it is over. */
export interface LoginSource {
  readonly readIdentity: ReadIdentity;
  readonly revoke: RevokeTokens;
}

export interface LoginSourceDeps {
  readonly oauth: Pick<BrokerConfig, 'provider' | 'providerClient' | 'identity'>;
  readonly verifier: IdTokenVerifier;
  readonly metadata: ProviderMetadata;
  readonly endpoints: ProviderEndpoints;
  /** Claims that rules name, as they stand now. */
  readonly listNamedClaims: () => readonly string[];
  readonly fetch: Fetch;
  readonly log: Log;
}

export const openLoginSource = (deps: LoginSourceDeps): LoginSource =>
  SOURCES[deps.oauth.provider.login](deps);

const SOURCES: { readonly [Login in ProviderLogin]: (deps: LoginSourceDeps) => LoginSource } = {
  openid: ({ oauth, endpoints, ...deps }) => ({
    readIdentity: createReadIdentity({
      ...deps,
      config: oauth.identity,
      errorCodes: oauth.provider.quirks.errorCodes,
    }),
    revoke: createRevokeTokens(oauth.providerClient, createProviderApi(deps.fetch), endpoints),
  }),
  github: ({ oauth: { provider, providerClient, identity }, ...deps }) => ({
    readIdentity: createReadGithubIdentity({ ...deps, config: identity, issuer: provider.issuer }),
    revoke: createRevokeGithubToken({ ...deps, providerClient, issuer: provider.issuer }),
  }),
};
