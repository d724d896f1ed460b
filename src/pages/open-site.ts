// §4.1, §19: what the pages show of this gateway, for the composition root.

import type { Config } from '../config/config.ts';
import type { OAuthConfig } from '../config/groups/oauth.ts';
import type { Endpoint } from '../http/endpoint/endpoint.ts';
import { createJsonReply } from '../http/endpoint/message.ts';
import { JSONRPC } from '../http/endpoint/render-error.ts';
import {
  buildPlaygroundCallbackUrl,
  OPERATORS_CLIENT_ID,
  PLAYGROUND_CLIENT_ID,
} from '../logins/auth/own-clients.ts';
import type { GetPublicTools, PublicTool } from '../mcp/catalog/catalog.ts';
import type { JsonObject } from '../platform/json.ts';
import { PACKAGE_VERSION } from '../platform/own-files.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { APP_FRAME_ENDPOINT } from './app-frame.ts';
import type { Logo } from './logo.ts';

interface PublicSite {
  readonly endpoints: readonly Endpoint[];
  /** Undefined where strangers see none. */
  readonly getPublicTools: GetPublicTools | undefined;
}

/** Every tool that somebody who has not logged in may see. */
type ListTools = () => Promise<readonly JsonObject[]>;

export function openSite(
  runtime: Runtime,
  logo: Logo | undefined,
  listTools: ListTools,
  shown: {
    /** Whether there is a server that users connect themselves now. */
    readonly hasConnections: () => boolean;
    /** §25.2: whether users are told what each path costs. */
    readonly hasPaths: boolean;
  },
): PublicSite {
  const { config } = runtime;
  const getPublicTools = config.site.showsTools
    ? createGetPublicTools(runtime, listTools)
    : undefined;
  const facts = listSiteFacts(config, logo?.url);
  const siteFacts: Endpoint = {
    kind: 'open',
    method: 'GET',
    path: '/site.json',
    errors: JSONRPC,
    async handle() {
      const tools = await getPublicTools?.();
      const connectionsUrl = shown.hasConnections() ? `${facts.baseUrl}/connections` : undefined;
      const pathsUrl = shown.hasPaths ? `${facts.baseUrl}/paths.json` : undefined;
      return createJsonReply(
        200,
        { ...facts, connectionsUrl, pathsUrl, tools },
        { 'Cache-Control': 'public, max-age=60' },
      );
    },
  };
  return { endpoints: [siteFacts, APP_FRAME_ENDPOINT, ...(logo?.endpoints ?? [])], getPublicTools };
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

// §19.2: the tools that everybody may see, with SITE_SHOWS_TOOLS=true.

/** Anybody may ask, and servers behind the gateway may have to be asked for it. */
const KEPT_MS = 60_000;

function createGetPublicTools({ clock, log }: Runtime, listTools: ListTools): GetPublicTools {
  let kept: { readonly tools: ReturnType<GetPublicTools>; readonly until: number } | undefined;

  async function load(): Promise<readonly PublicTool[] | undefined> {
    try {
      return (await listTools()).flatMap(toPublicTool);
    } catch (error) {
      log.warn('The tools for the front page (SITE_SHOWS_TOOLS) cannot be listed.', {
        cause: error,
      });
      return undefined;
    }
  }

  return function getPublicTools() {
    if (kept === undefined || clock.now() >= kept.until) {
      kept = { tools: load(), until: clock.now() + KEPT_MS };
    }
    return kept.tools;
  };
}

/** Its name and what it says of itself: no schema. */
const toPublicTool = ({ name, title, description }: JsonObject): readonly PublicTool[] =>
  typeof name === 'string'
    ? [
        {
          name,
          ...(typeof title === 'string' && { title }),
          ...(typeof description === 'string' && { description }),
        },
      ]
    : [];
