// §18.3: the transports, one row each. Functions here give the facts about a server; callers do not check its kind.
import type { Problem } from '../../config/problem.ts';
import type { FindFacts, UpstreamConfig } from '../../mcp/upstream/upstream-config.ts';
import type { CredentialType, NeededSettings } from '../credentials/credential-type.ts';
import { findCredentialType } from '../credentials/credentials.ts';
import { httpTransport } from '../http/http-upstream.ts';
import { stdioTransport } from '../stdio/stdio-upstream.ts';
import type { ServerDescription, Transport } from './transport.ts';

/** In the order of the documentation. */
export const TRANSPORTS = [stdioTransport, httpTransport] as const;

type ConfigOf<One> = One extends Transport<infer Config> ? Config : never;

/** A server in the configuration file. */
export type ServerEntry = ConfigOf<(typeof TRANSPORTS)[number]>;

export function findTransport({
  kind,
}: Pick<UpstreamConfig, 'kind'>): Transport<ServerEntry> & Transport {
  const found = TRANSPORTS.find((one) => one.kind === kind);
  if (found === undefined) throw new Error(`There is no transport ${kind}`);
  return found;
}

export const findFacts: FindFacts = (config) => findTransport(config).findFacts(config);

export const describeServer = (config: UpstreamConfig): ServerDescription =>
  findTransport(config).describe(config);

/** Undefined for a server without credentials. */
export function findServerCredentials(config: UpstreamConfig): CredentialType | undefined {
  const { auth = NO_AUTH } = describeServer(config);
  return findCredentialType(auth);
}

const NO_AUTH = { type: 'none' };

/** True if each user has their own lists. */
export const dependsOnUser = (config: UpstreamConfig): boolean =>
  findFacts(config).personalBy !== undefined;

/** True if the gateway passes it the caller's identity, so that its lists may differ between users. */
export const knowsUsers = (config: UpstreamConfig): boolean =>
  findFacts(config).personalBy === 'auth';

export const needsUser = (config: UpstreamConfig): boolean => findFacts(config).needsUser;

/** Problems with the settings that the servers' `auth` requires, for a gateway that is about to serve users. */
export const findAuthProblems = (
  servers: readonly UpstreamConfig[],
  settings: NeededSettings,
): readonly Problem[] =>
  servers.flatMap((server) => {
    const { auth = NO_AUTH } = describeServer(server);
    const credentials = findCredentialType(auth);
    if (credentials === undefined) return [];
    return credentials.requirements
      .filter(({ checkedAt, isMet }) => checkedAt === 'start' && !isMet(settings, auth))
      .map(({ problem }) => ({
        message: `Server ${server.name}: auth ${credentials.type} ${problem}`,
      }));
  });
