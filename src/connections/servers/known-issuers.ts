// §24.2: authorization servers that the gateway already uses. A server names its authorization server and endpoints itself: no
// endpoint may belong to another authorization server, whether that one is from the configuration or used by another server.
import type { BrokerConfig } from '../../config/groups/oauth.ts';
import type { ProviderDocument } from '../../http/oauth-client/provider-metadata.ts';
import { ConnectionProblem, type ConnectionServer } from '../../mcp/upstream/connections.ts';
import { hashSha256 } from '../../platform/ids.ts';
import { isStringArray, parseObject } from '../../platform/json.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { buildConnectionIssuerKey } from '../../store/keys.ts';
import { createRecords, textFormat } from '../../store/records.ts';
import type { KeptConnections } from '../kept-connections.ts';
import {
  type AuthorizationServer,
  isSameIssuer,
  type LoginPlace,
  listEndpoints,
} from './authorization-server.ts';

export type KnownIssuers = ReturnType<typeof createKnownIssuers>;

export interface KnownIssuer {
  readonly issuer: string;
  /** Origins of issuer and endpoints. */
  readonly origins: readonly string[];
  /** ID of the configured client. */
  readonly clientId?: string | undefined;
}

/** Stored per server name: the number is bounded by the servers that the configuration file has had. */
interface Noted extends Pick<KnownIssuer, 'issuer' | 'origins'> {
  /** True if the server had a different issuer before, which may know its redirect URI. */
  readonly hasMoved: boolean;
}

const TEN_YEARS_SECONDS = 315_360_000;

/** `findProvider` returns the provider of the gateway's own users, `findLoginPlace` that of a server. */
export function createKnownIssuers(
  { store, config }: Runtime,
  { seal, listServers }: KeptConnections,
  findProvider: () => Promise<KnownIssuer>,
  findLoginPlace: (server: ConnectionServer) => Promise<LoginPlace>,
) {
  const { baseUrl } = config.server;
  const values = createRecords(store, textFormat, seal);

  // BASE_URL is a part of the redirect URI: with another one, the issuer is recorded again.
  const buildKey = (name: string) =>
    buildConnectionIssuerKey(hashSha256(JSON.stringify([baseUrl, name])));

  /** Issuers from the configuration and of other servers, except the given one. @throws StoreUnavailable */
  async function listOthers(server: ConnectionServer, issuer: string) {
    const others = listServers().filter(({ name }) => name !== server.name);
    const known = await Promise.all(
      others.map(async (other): Promise<readonly KnownIssuer[]> => {
        const { name, url, auth } = other;
        const noted = parseNoted(await values.get(buildKey(name)));
        const found = [await describeNamed(other), noted].filter((one) => one !== undefined);
        // A client may be configured although nobody has logged in yet.
        if (found.length === 0) found.push({ issuer: new URL(url).origin, origins: [] });
        return found.map((one) => ({ ...one, clientId: auth.clientId }));
      }),
    );
    const all = [await findProvider(), ...known.flat()];
    return all.filter((one) => !isSameIssuer(one.issuer, issuer));
  }

  /**
   * Uses its metadata, since endpoints may be on other hosts, as Google's are; falls back to its address while the metadata is
   * unavailable.
   */
  async function describeNamed(server: ConnectionServer) {
    const named = describeConfigured(server.auth.authorizationServer);
    if (named === undefined) return undefined;
    return findLoginPlace(server).then(
      ({ authorizationServer }) => describeFound(authorizationServer),
      (problem: unknown) => {
        if (problem instanceof ConnectionProblem) return named;
        throw problem;
      },
    );
  }

  return {
    listOthers,
    /** @throws ConnectionProblem if an endpoint belongs to another authorization server; StoreUnavailable */
    async requireOwnEndpoints(server: ConnectionServer, at: AuthorizationServer) {
      if (listForeignOrigins(at).length === 0) return;
      const problem = findForeignEndpoints(server, at, await listOthers(server, at.issuer));
      if (problem !== undefined) throw problem;
    },
    /**
     * To be called before a user is sent there. @throws ConnectionProblem if another authorization server may know this server’s
     * redirect URI, and nothing would distinguish the two; StoreUnavailable
     */
    async note(server: ConnectionServer, at: AuthorizationServer) {
      const { name, auth } = server;
      await values.update(buildKey(name), (text) => {
        const before = parseNoted(text);
        const hasMoved =
          before !== undefined && (before.hasMoved || !isSameIssuer(before.issuer, at.issuer));
        if (hasMoved && !at.sendsIssuer && auth.authorizationServer === undefined)
          throw new ConnectionProblem(
            'operator',
            `${name}: its authorization server is ${at.issuer} now. It was another one before, and this one does not say in its responses who it is (RFC 9207), so the two could not be told apart. If it is the right one, set "authorizationServer" of ${name} to it.`,
          );
        const noted = JSON.stringify({ ...describeFound(at), hasMoved } satisfies Noted);
        return noted === text
          ? { result: undefined }
          : { value: noted, ttlSeconds: TEN_YEARS_SECONDS, result: undefined };
      });
    },
  };
}

/** Endpoints named by the server itself that belong to another authorization server. */
export function findForeignEndpoints(
  { name, auth }: ConnectionServer,
  at: AuthorizationServer,
  others: readonly KnownIssuer[],
): ConnectionProblem | undefined {
  // The operator vouches for configured endpoints, such as Google's, which are on several hosts.
  if (auth.authorizationServer !== undefined) return undefined;
  const foreign = listForeignOrigins(at);
  for (const { issuer, origins } of others) {
    const origin = foreign.find((one) => origins.includes(one));
    if (origin === undefined || isSameIssuer(issuer, at.issuer)) continue;
    return new ConnectionProblem(
      'operator',
      `${name}: the metadata of its authorization server ${at.issuer} names endpoints at ${new URL(origin).host}, which are those of ${issuer}, another authorization server of this gateway. Nobody was sent there. Only if they are meant to be the same, set "authorizationServer" of ${name} to ${at.issuer}.`,
    );
  }
  return undefined;
}

/** The provider of the gateway's own users, which servers may not name either. `document` is its metadata, if available. */
export function describeProvider(
  { provider, providerClient, endpoints }: BrokerConfig,
  document?: ProviderDocument,
): KnownIssuer {
  const urls = [
    provider.issuer,
    ...Object.values(endpoints),
    document?.authorization_endpoint,
    document?.token_endpoint,
    document?.revocation_endpoint,
  ].filter((url) => url !== undefined);
  return {
    issuer: provider.issuer,
    origins: urls.map((url) => new URL(url).origin),
    clientId: providerClient.id,
  };
}

export const describeFound = (at: AuthorizationServer): KnownIssuer => ({
  issuer: at.issuer,
  origins: listOrigins(at),
});

const listOrigins = (at: AuthorizationServer): readonly string[] => [
  ...new Set([at.issuer, ...listEndpoints(at)].map((url) => new URL(url).origin)),
];

/** Its own comes first. */
const listForeignOrigins = (at: AuthorizationServer): readonly string[] => listOrigins(at).slice(1);

export function describeConfigured(
  named: ConnectionServer['auth']['authorizationServer'],
): KnownIssuer | undefined {
  if (named === undefined) return undefined;
  return {
    issuer: 'issuer' in named ? named.issuer : named.tokenUrl,
    origins: Object.values(named).map((url: string) => new URL(url).origin),
  };
}

function parseNoted(text: string | undefined): Noted | undefined {
  const { issuer, origins, hasMoved } = (text !== undefined && parseObject(text)) || {};
  return typeof issuer === 'string' && isStringArray(origins)
    ? { issuer, origins, hasMoved: hasMoved === true }
    : undefined;
}
