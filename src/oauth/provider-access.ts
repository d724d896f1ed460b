// A part of the composition root: what is known of the provider, and who is let in by its tokens.

import { type Auth, type AuthDeps, createAuth, disabledAuth } from '../auth/auth.ts';
import { createChallenge } from '../auth/bearer.ts';
import {
  createProviderMetadata,
  type ProviderMetadata,
} from '../auth/provider/provider-metadata.ts';
import type { Config } from '../config/config.ts';
import type { ProviderConfig } from '../config/groups/provider.ts';

/** Provider metadata and authentication. */
export function createProviderAccess(
  { server, http, auth, oauth }: Config,
  {
    isServer,
    ...deps
  }: Omit<AuthDeps, 'metadata' | 'baseUrl' | 'getChallenge' | 'maxTokenBytes' | 'hasMetrics'> & {
    readonly isServer: (name: string) => boolean;
  },
): { readonly metadata: ProviderMetadata | undefined; readonly auth: Auth } {
  const openMetadata = ({ issuer }: ProviderConfig) => createProviderMetadata({ issuer, ...deps });
  if (!auth.required) {
    return { metadata: oauth.provider && openMetadata(oauth.provider), auth: disabledAuth };
  }
  const metadata = openMetadata(auth.provider);
  return {
    metadata,
    auth: createAuth(auth, {
      ...deps,
      metadata,
      baseUrl: server.baseUrl,
      getChallenge: createChallenge(server.baseUrl, oauth.mode, isServer),
      maxTokenBytes: http.maxTokenBytes,
      hasMetrics: server.metricsEnabled,
    }),
  };
}
