// §24.6: how users of a server would log in there, asked as the gateway asks when somebody connects. Nothing is registered.
import type { Config } from '../../config/config.ts';
import type { ClientSource } from '../../connections/records/connection-record.ts';
import {
  type AuthorizationServer,
  createFindLoginPlace,
} from '../../connections/servers/authorization-server.ts';
import { findDocumentUrl } from '../../connections/servers/client-document.ts';
import { chooseClientSource } from '../../connections/servers/clients.ts';
import {
  describeConfigured,
  describeProvider,
  findForeignEndpoints,
  type KnownIssuer,
} from '../../connections/servers/known-issuers.ts';
import { createOutbound, NoAnswer } from '../../connections/servers/outbound.ts';
import {
  buildOwnRedirectUri,
  buildRedirectUri,
  isRedirectAmbiguous,
} from '../../connections/servers/redirect-uri.ts';
import type { ConnectionServer } from '../../mcp/upstream/connection.ts';
import { ConnectionProblem } from '../../mcp/upstream/connections.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Fetch } from '../../platform/fetch-with-limits.ts';
import type { OpenTunnel } from '../../platform/outbound/outbound-network.ts';
import { createPublicNetwork, HostNotPublic } from '../../platform/outbound/public-network.ts';

export type FoundLogin =
  | {
      readonly kind: 'found';
      readonly at: AuthorizationServer;
      /** Who the gateway is there; `nobody` where it has no client, and cannot register. */
      readonly client: ClientSource | 'nobody';
      /** Whether it has the redirect URI of all servers there, and is not promised `iss`. */
      readonly isAmbiguous: boolean;
      /** Which it needs there; its own where the one of all is of no use. */
      readonly redirectUri: string;
      /** Whether it takes PKCE with S256; undefined where it does not say. */
      readonly takesS256: boolean | undefined;
    }
  | {
      readonly kind: 'problem';
      /** A sentence; no secret is in it. */
      readonly message: string;
      /** Nobody answered at an address that the server or its operator named. */
      readonly isUnreachable: boolean;
      /** Something that the server named has an address that is not public. */
      readonly isPrivate: boolean;
      /** Its endpoints are those of another authorization server. */
      readonly isForeign?: boolean;
      readonly cause?: unknown;
    };

export interface FindLoginDeps {
  readonly config: Pick<Config, 'server' | 'oauth'>;
  readonly fetch: Fetch;
  readonly tunnel: OpenTunnel;
  readonly clock: Clock;
}

interface ServerLogin {
  readonly server: ConnectionServer;
  readonly login: FoundLogin;
}

export async function findLogins(
  servers: readonly ConnectionServer[],
  deps: FindLoginDeps,
): Promise<readonly ServerLogin[]> {
  const { oauth } = deps.config;
  const provider = oauth.mode === 'broker' ? [describeProvider(oauth)] : [];
  const found = await Promise.all(
    servers.map(async (server) => ({ server, login: await findLogin(server, deps) })),
  );
  return found.map(({ server, login }) => {
    if (login.kind === 'problem') return { server, login };
    const others = found.filter((one) => one.server !== server).flatMap(listIssuers);
    const foreign = findForeignEndpoints(server, login.at, [...provider, ...others]);
    return { server, login: foreign === undefined ? login : toForeign(foreign) };
  });
}

/** As far as the file and the servers say it: whom a running gateway knows besides stands in its store. */
function listIssuers({ server, login }: ServerLogin): readonly KnownIssuer[] {
  const configured = describeConfigured(server.auth.authorizationServer);
  if (configured !== undefined) return [configured];
  if (login.kind === 'problem') return [];
  const { issuer } = login.at;
  return [{ issuer, origins: [new URL(issuer).origin] }];
}

const toForeign = ({ message }: ConnectionProblem): FoundLogin => ({
  kind: 'problem',
  message,
  isUnreachable: false,
  isPrivate: false,
  isForeign: true,
});

async function findLogin(
  server: ConnectionServer,
  { config, fetch, tunnel, clock }: FindLoginDeps,
): Promise<FoundLogin> {
  const outbound = createOutbound({ fetch, clock }, createPublicNetwork({ clock, tunnel }));
  try {
    const { authorizationServer } = await createFindLoginPlace(outbound, clock)(server);
    const { challengeMethods } = authorizationServer;
    const { baseUrl } = config.server;
    const hasDocument = findDocumentUrl(baseUrl) !== undefined;
    const isAmbiguous = isRedirectAmbiguous(server, authorizationServer);
    return {
      kind: 'found',
      at: authorizationServer,
      client: chooseClientSource(server.auth, authorizationServer, hasDocument) ?? 'nobody',
      isAmbiguous,
      redirectUri: (isAmbiguous ? buildOwnRedirectUri : buildRedirectUri)(baseUrl, server),
      takesS256: challengeMethods?.includes('S256'),
    };
  } catch (problem) {
    if (!(problem instanceof ConnectionProblem)) throw problem;
    const { message, cause } = problem;
    const isUnreachable = cause instanceof NoAnswer;
    return {
      kind: 'problem',
      message,
      isPrivate: isFromPrivateHost(problem),
      isUnreachable,
      cause,
    };
  }
}

function isFromPrivateHost(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    if (at instanceof HostNotPublic) return true;
  }
  return false;
}
