// §24: finds the access token to send a request for an owner to a server with, and handles a server's refusal of that token.

import type {
  Access,
  ActiveAccess,
  ConnectionServer,
  Connections,
} from '../mcp/upstream/connections.ts';
import { createExpiringMap } from '../platform/bounded-map.ts';
import { createSingleFlight } from '../platform/single-flight.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { ConnectionPlace } from './connection-record.ts';
import { findRenewalTime, type KeptConnections } from './kept-connections.ts';
import { FORCED_AGAIN_MS, findLoginNeed, MISSING, type TokenRenewal } from './renewal.ts';
import { readBearerChallenge } from './servers/authorization-server.ts';

/** A model retries at once: after a failure, the authorization server is left alone for this long. */
const FAILURE_MS = 5000;
const DAY_MS = 86_400_000;

export function createConnectionAccess(
  { clock }: Runtime,
  { records, known, changes, findPlace }: KeptConnections,
  renewal: TokenRenewal,
): Pick<Connections, 'getAccess' | 'replaceRefusedToken'> {
  const loads = createSingleFlight<string, Access>();
  const refusals = createSingleFlight<string, Access>();
  const failures = createExpiringMap<Access>('connectionFailures', clock.monotonic);
  // A failure of one connection does not apply to its successor.
  changes.listen(({ hash }) => failures.delete(hash));

  async function load(place: ConnectionPlace, server: ConnectionServer): Promise<Access> {
    const reading = known.beginReading();
    const stored = await records.read(place).catch(() => 'unreadable' as const);
    if (stored === 'unreadable') return describeUnreadable(server);
    if (stored === undefined) return MISSING;
    const { record } = stored;
    const needed = findLoginNeed(record, server);
    if (needed !== undefined) return needed;
    const now = clock.now();
    if (now >= findRenewalTime(record)) {
      const access = await renewal.renew(place, server);
      if (access.kind === 'unavailable')
        failures.set(place.hash, access, clock.monotonic() + FAILURE_MS);
      return access;
    }
    // Keeps a connection in use from expiring. Any other change to the record does the same.
    if (now - record.usedAt > DAY_MS)
      void records.replace(place, stored, { ...record, usedAt: now }).catch(() => undefined);
    return known.note(place, server, record, reading);
  }

  /** A 401 for one call may come from a service behind the server, while the server accepts the same token from other callers. */
  async function renewRefused(
    place: ConnectionPlace,
    server: ConnectionServer,
    { token }: ActiveAccess,
    isRefusedItself: () => Promise<boolean>,
  ): Promise<Access> {
    const isSame = (found: Access) => found.kind === 'active' && found.token === token;
    let access = await renewal.renew(place, server, token);
    // Joined a renewal that was started for another reason and returned the refused token.
    if (isSame(access)) access = await renewal.renew(place, server, token);
    if (!isSame(access)) return access;
    // Continue with it if the server accepts the token, was asked recently, or another token may be available soon.
    const stored = await records.read(place);
    if (stored === undefined) return MISSING;
    const { record } = stored;
    const now = clock.now();
    const { forced, askedAt, refreshToken } = record;
    const isFresh = refreshToken === undefined || forced?.isRenewed === true;
    const isAsked = askedAt !== undefined && now - askedAt < FORCED_AGAIN_MS;
    if (record.accessToken !== token || !isFresh || isAsked) return access;
    // Only one replica queries the server.
    const asking = await records.replace(place, stored, { ...record, askedAt: now });
    if (asking === undefined || !(await isRefusedItself())) return access;
    const reason =
      refreshToken === undefined
        ? `${server.name} refuses its token, and its authorization server gave none to renew it: log in again`
        : `${server.name} refuses the token that its authorization server has just made for this account: log in again`;
    return (await renewal.requireLogin(place, asking, reason)) ?? access;
  }

  return {
    getAccess(owner, server) {
      const place = findPlace(owner, server.name);
      const found = known.get(place, server) ?? failures.get(place.hash);
      return found ?? loads.run(`${place.hash} ${server.url}`, () => load(place, server));
    },
    async replaceRefusedToken(owner, server, used, { status, challenge, isRefusedItself }) {
      const place = findPlace(owner, server.name);
      if (status === 403) {
        const { scopes } = readBearerChallenge(challenge);
        const names = scopes === undefined ? 'more than was granted' : scopes.join(' ');
        // The token stays valid for everything else.
        return {
          kind: 'login needed',
          reason: `${server.name} requires more scopes (${names}): log in again to grant them`,
          scopes,
        };
      }
      const key = `${place.hash} ${used.token}`;
      // The failure only concerns this caller: others continue with the current token.
      return refusals
        .run(key, () => renewRefused(place, server, used, isRefusedItself))
        .catch(() => describeUnreadable(server));
    },
  };
}

const describeUnreadable = ({ name }: ConnectionServer): Access => ({
  kind: 'unavailable',
  reason: `the connection to ${name} could not be read just now`,
});
