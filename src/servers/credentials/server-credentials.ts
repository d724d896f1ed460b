// §18.6: what `auth` and `isolation` of a server mean for who asks it.
import type { Problem } from '../../config/problem.ts';
import type { ConnectionServer } from '../../mcp/upstream/connection.ts';
import type { UpstreamConfig } from '../../mcp/upstream/upstream-config.ts';
import type { CredentialType, NeededSettings } from './credential-type.ts';
import { findCredentialType } from './credentials.ts';

/** Undefined where the server learns nothing of the caller. */
export const findServerCredentials = (config: UpstreamConfig): CredentialType | undefined =>
  config.kind === 'http' ? findCredentialType(config.auth) : undefined;

/** True if it is told who calls, so that its lists may differ between users. */
export const knowsUsers = (config: UpstreamConfig): boolean =>
  findServerCredentials(config) !== undefined;

/** True if it answers nobody without a user's token: the gateway itself has no credentials there. */
export const needsUser = (config: UpstreamConfig): boolean =>
  findServerCredentials(config)?.needsUser === true;

/**
 * True if each user has lists of their own, for what their client can be asked. A process of one's own is listed by
 * oneself, too: for the gateway alone there is none.
 */
export const dependsOnUser = (config: UpstreamConfig): boolean =>
  config.kind === 'http' ? knowsUsers(config) : config.isolation !== 'shared';

/** §24: as far as connections to it concern it; undefined where users do not log in at it. */
export const readConnectionServer = (config: UpstreamConfig): ConnectionServer | undefined =>
  config.kind === 'http' && config.auth.type === 'oauth'
    ? { name: config.name, url: config.url, auth: config.auth }
    : undefined;

/** Problems of the settings of a gateway that is about to serve users, as `auth` of the servers needs them. */
export const findAuthProblems = (
  servers: readonly UpstreamConfig[],
  settings: NeededSettings,
): readonly Problem[] =>
  servers.flatMap((server) => {
    if (server.kind !== 'http') return [];
    const { auth } = server;
    const credentials = findCredentialType(auth);
    const requirements = credentials?.requirements.filter(({ checkedAt }) => checkedAt === 'start');
    return (requirements ?? [])
      .filter(({ isMet }) => !isMet(settings, auth))
      .map(({ problem }) => ({
        message: `Server ${server.name}: auth ${credentials?.type} ${problem}`,
      }));
  });
