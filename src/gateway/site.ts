// A part of the composition root: what the pages show of this gateway.

import {
  buildPlaygroundCallbackUrl,
  OPERATORS_CLIENT_ID,
  PLAYGROUND_CLIENT_ID,
} from '../auth/own-clients.ts';
import type { Config } from '../config/config.ts';
import type { OAuthConfig } from '../config/groups/oauth.ts';
import type { Endpoint } from '../endpoint/endpoint.ts';
import { createJsonReply } from '../endpoint/message.ts';
import { JSONRPC } from '../endpoint/render-error.ts';
import { listTools } from '../mcp/catalog/own-catalog.ts';
import type { ServedCatalog } from '../mcp/catalog/served-catalog.ts';
import type { Clock } from '../platform/clock.ts';
import type { Log } from '../platform/log.ts';
import { PACKAGE_VERSION } from '../platform/own-files.ts';
import { APP_FRAME_ENDPOINT } from '../site/app-frame.ts';
import type { Logo } from '../site/logo.ts';
import { createGetPublicTools, type GetPublicTools } from '../site/public-tools.ts';

interface SiteParts {
  readonly logo: Logo | undefined;
  readonly catalog: ServedCatalog;
  /** Whether there is a server that users connect themselves now. */
  readonly hasConnections: () => boolean;
  /** §25.2: whether users are told what each path costs. */
  readonly hasPaths: boolean;
  readonly clock: Clock;
  readonly log: Log;
}

interface PublicSite {
  readonly endpoints: readonly Endpoint[];
  /** Undefined where strangers see none. */
  readonly getPublicTools: GetPublicTools | undefined;
}

export function createPublicSite(
  config: Config,
  { logo, catalog, hasConnections, hasPaths, clock, log }: SiteParts,
): PublicSite {
  const getPublicTools = config.site.showsTools
    ? createGetPublicTools({ listTools: () => listTools(catalog), clock, log })
    : undefined;
  const facts = listSiteFacts(config, logo?.url);
  return {
    endpoints: [
      ...createSiteEndpoints(facts, { getPublicTools, hasConnections, hasPaths }),
      APP_FRAME_ENDPOINT,
      ...(logo?.endpoints ?? []),
    ],
    getPublicTools,
  };
}

/** Public, and the same until the next start. Members that are undefined are left out. */
interface SiteFacts {
  readonly name: string;
  readonly version: string;
  readonly baseUrl: string;
  readonly mcpUrl: string;
  readonly logo: string | undefined;
  /** Undefined where nobody has to log in. */
  readonly login: LoginFacts | undefined;
}

interface LoginFacts {
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

/** §4.1, §19.2: what the pages know of this gateway, and the endpoint that tells programs. */
const listSiteFacts = (config: Config, logo: string | undefined): SiteFacts => {
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

interface ChangingFacts extends Pick<SiteParts, 'hasConnections' | 'hasPaths'> {
  /** Undefined where strangers see none. */
  readonly getPublicTools: GetPublicTools | undefined;
}

const createSiteEndpoints = (
  facts: SiteFacts,
  { getPublicTools, hasConnections, hasPaths }: ChangingFacts,
): readonly Endpoint[] => [
  {
    kind: 'open',
    method: 'GET',
    path: '/site.json',
    errors: JSONRPC,
    async handle() {
      const tools = await getPublicTools?.();
      const connectionsUrl = hasConnections() ? `${facts.baseUrl}/connections` : undefined;
      const pathsUrl = hasPaths ? `${facts.baseUrl}/paths.json` : undefined;
      return createJsonReply(
        200,
        { ...facts, connectionsUrl, pathsUrl, tools },
        { 'Cache-Control': 'public, max-age=60' },
      );
    },
  },
];
