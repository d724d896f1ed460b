// §19.2: what the pages know of this gateway.

import {
  buildPlaygroundCallbackUrl,
  OPERATORS_CLIENT_ID,
  PLAYGROUND_CLIENT_ID,
} from '../auth/own-clients.ts';
import type { Config } from '../config/config.ts';
import type { OAuthConfig } from '../config/groups/oauth.ts';
import { PACKAGE_VERSION } from '../platform/version.ts';

/** Public, and the same until the next start. Members that are undefined are left out. */
export interface SiteFacts {
  readonly name: string;
  readonly version: string;
  readonly baseUrl: string;
  readonly mcpUrl: string;
  readonly logo: string | undefined;
  /** Undefined where nobody has to log in. */
  readonly login: LoginFacts | undefined;
}

export interface LoginFacts {
  /** The host of the provider's login page. */
  readonly provider: string;
  readonly mode: OAuthConfig['mode'];
  /** False where the gateway only checks tokens that clients got elsewhere. */
  readonly isOffered: boolean;
  readonly clientId: string;
  /** Undefined where there is no operators' page. */
  readonly operatorsClientId: string | undefined;
  readonly redirectUri: string;
}

export const listSiteFacts = (config: Config, logo: string | undefined): SiteFacts => {
  const { displayName, baseUrl } = config.server;
  return {
    name: displayName,
    version: PACKAGE_VERSION,
    baseUrl,
    mcpUrl: `${baseUrl}/mcp`,
    logo,
    login: config.auth.required ? listLoginFacts(config, config.auth.provider.issuer) : undefined,
  };
};

function listLoginFacts({ server, oauth, admin }: Config, issuer: string): LoginFacts {
  const { mode, endpoints, providerClient } = oauth;
  return {
    provider: new URL(endpoints.authorizationUrl ?? issuer).host,
    mode,
    isOffered:
      mode === 'broker' ||
      [endpoints.authorizationUrl, endpoints.tokenUrl, providerClient.id].every(Boolean),
    clientId: PLAYGROUND_CLIENT_ID,
    operatorsClientId: admin.groups.length > 0 ? OPERATORS_CLIENT_ID : undefined,
    redirectUri: buildPlaygroundCallbackUrl(server.baseUrl),
  };
}
