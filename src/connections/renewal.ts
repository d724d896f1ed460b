// §24: a token takes the place of another: once at a time on all replicas, and the answer stored before it is used. Where an
// answer was lost, the same is asked again: many servers take a refresh token until the one that took its place is used, or for
// some minutes. The others say `invalid_grant`, and a login is needed; what was lost cannot be had there in any other way.
import type { FormPair } from '../http/oauth-client/client-authentication.ts';
import type { ServerTokens, TokenAnswer } from '../http/oauth-client/token-answer.ts';
import type { Access, ConnectionServer } from '../mcp/upstream/connections.ts';
import { createBoundedMap } from '../platform/bounded-map.ts';
import { pause } from '../platform/clock.ts';
import { generateSecret } from '../platform/ids.ts';
import { describeCause } from '../platform/log.ts';
import { createWarnThrottle } from '../platform/throttle.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { AuthorizationServers } from './authorization-servers.ts';
import {
  type ConnectionPlace,
  type ConnectionRecord,
  type ConnectionRecords,
  describeChanged,
  isMadeFor,
  type StoredConnection,
} from './connection-record.ts';
import { findRenewalTime, type KeptConnections, RESERVE_MS, toAccess } from './kept-connections.ts';
import { createRunExclusively, StillUnderWay } from './run-exclusively.ts';
import { NoAnswer } from './servers/outbound.ts';
import { isSameAccount, type Revocation, TooManyRequests } from './servers/token-endpoint.ts';

export type TokenRenewal = ReturnType<typeof createRenewal>;

/** A service behind a server may answer 401 to one caller as often as it is called: the token is everybody's who is served by it. */
export const FORCED_AGAIN_MS = 60_000;

export function createRenewal(
  runtime: Runtime,
  { records, known, changes, audited }: KeptConnections,
  { clients, tokenEndpoint, revokeTokens, replaceClient }: AuthorizationServers,
) {
  const { clock, log, metrics } = runtime;
  const runExclusively = createRunExclusively<Access>(runtime, changes);
  const newTokens = createNewTokens(runtime, records, revokeTokens);
  const warn = createWarnThrottle(clock, (server: string, reason: string, cause: unknown) =>
    log.warn('A token for a server was not renewed; its users keep their connections.', {
      server,
      reason,
      ...(cause !== undefined && { cause }),
    }),
  );

  /**
   * Resolves to the access to go on with: by the token that is stored, where it is good; else by a new one. In place of one that was `refused` (401)
   * another is had once a minute at most: until then it is the same, which others may be served by. Never rejects.
   */
  function renew(
    place: ConnectionPlace,
    server: ConnectionServer,
    refused?: string,
  ): Promise<Access> {
    return runExclusively({
      hash: place.hash,
      look: (isElsewhere) => look(place, server, isElsewhere, refused),
      run: () => run(place, server, refused),
    }).catch((error: unknown) => {
      if (error instanceof StillUnderWay)
        return {
          kind: 'unavailable',
          reason: `another renewal of the token for ${server.name} has not finished`,
        };
      const reason = `the connection to ${server.name} could not be read or written just now`;
      warn(server.name, reason, error);
      return { kind: 'unavailable', reason };
    });
  }

  /** Undefined where a new token is needed. */
  async function look(
    place: ConnectionPlace,
    server: ConnectionServer,
    isElsewhere: boolean,
    refused: string | undefined,
  ): Promise<Access | undefined> {
    const since = known.beginReading();
    const stored = await records.read(place);
    if (stored === undefined) return describeMissing();
    const { record } = stored;
    const needed = findLoginNeed(record, server);
    if (needed !== undefined) return needed;
    // One that is under way is waited for.
    if (record.accessToken === refused && (mayForce(record) || record.renewal !== undefined))
      return undefined;
    const until = isElsewhere ? (record.expiresAt ?? 0) - RESERVE_MS : findRenewalTime(record);
    return clock.now() < until ? known.note(place, server, record, since) : undefined;
  }

  const mayForce = (record: ConnectionRecord) =>
    newTokens.hasUnsaved(record) ||
    (record.refreshToken !== undefined &&
      (record.forced === undefined || clock.now() - record.forced.at >= FORCED_AGAIN_MS));

  /** With the lock. */
  async function run(
    place: ConnectionPlace,
    server: ConnectionServer,
    refused: string | undefined,
  ): Promise<Access> {
    const stored = await records.read(place);
    if (stored === undefined) return describeMissing();
    const { record } = stored;
    if (newTokens.hasUnsaved(record)) return useNew(place, server, record, undefined);
    const now = clock.now();
    const isForced = record.accessToken === refused && now < findRenewalTime(record);
    if (isForced && !mayForce(record)) return toAccess(record);
    const { refreshToken } = record;
    if (refreshToken === undefined) {
      // There is no way to another token: the one that there is serves until its end.
      if (isUsable(record)) return toAccess(record);
      metrics.recordUpstreamTokenRefresh(server.name, 'login_needed');
      const reason = `the token for ${server.name} has expired, and its authorization server gave none to renew it: log in again`;
      const required = await requireLogin(place, stored, reason);
      return required ?? { kind: 'unavailable', reason: `${reason}; it has just changed` };
    }
    const renewal = { attempt: generateSecret(), at: now };
    const next = { ...record, renewal, ...(isForced && { forced: { at: now, isRenewed: false } }) };
    const marked = await records.replace(place, stored, next);
    // Somebody has ended it, or has logged in again.
    if (marked === undefined) return useStored(place, server);
    const isAgain = record.renewal !== undefined;
    return send(place, server, marked, { refreshToken, isAgain });
  }

  async function send(
    place: ConnectionPlace,
    server: ConnectionServer,
    marked: StoredConnection,
    { refreshToken, isAgain }: { readonly refreshToken: string; readonly isAgain: boolean },
  ): Promise<Access> {
    const { record } = marked;
    const form: readonly FormPair[] = [
      ['grant_type', 'refresh_token'],
      ['refresh_token', refreshToken],
    ];
    const client = clients.findForRecord(server, record);
    let answer: TokenAnswer;
    try {
      answer = await tokenEndpoint.request(record, client, form, server);
    } catch (error) {
      // The mark stays while its outcome is not known, and says so.
      if (!(error instanceof NoAnswer) || !error.mayHaveArrived) await unmark(place, marked);
      const isNothingSent = error instanceof TooManyRequests;
      const what = isNothingSent || error instanceof NoAnswer ? error.message : 'was not asked';
      return fail(place, server, what, error);
    }
    if (answer.kind === 'issued') return useNew(place, server, record, answer.tokens);
    if (answer.kind === 'invalid_grant') {
      metrics.recordUpstreamTokenRefresh(server.name, 'login_needed');
      const lost = isAgain ? ' (its answer to the renewal before was lost)' : '';
      const reason = `${server.name}’s token endpoint ${answer.said}${lost}: log in again`;
      const required = await requireLogin(place, marked, reason);
      return required ?? useStored(place, server);
    }
    await unmark(place, marked);
    const isForgotten = answer.kind === 'invalid_client' && record.client.source === 'registered';
    const more = isForgotten ? await replaceForgotten(server, record) : '';
    return fail(place, server, answer.said + more);
  }

  /** Goes on by what stands there now, whoever wrote it. */
  const useStored = async (place: ConnectionPlace, server: ConnectionServer) =>
    (await look(place, server, false, undefined)) ?? {
      kind: 'unavailable',
      reason: `the connection to ${server.name} has just changed`,
    };

  /** Not before they are stored; undefined for those that were not stored then. */
  async function useNew(
    place: ConnectionPlace,
    server: ConnectionServer,
    marked: ConnectionRecord,
    tokens: ServerTokens | undefined,
  ) {
    const stored = await newTokens.store(place, server, marked, tokens);
    if (stored === undefined) return useStored(place, server);
    metrics.recordUpstreamTokenRefresh(server.name, 'renewed');
    void audited.renewed(place, stored.id);
    const access = known.note(place, server, stored, known.beginReading());
    changes.announce(place, marked.state === 'active' ? 'renewed' : 'active');
    return access;
  }

  /**
   * Says what happened, in words. The connection keeps the client that it was made with: its tokens are of no use to another, and
   * the server may have been wrong.
   */
  async function replaceForgotten(server: ConnectionServer, record: ConnectionRecord) {
    try {
      return (await replaceClient(server, record))
        ? ': the registration is gone; it was made anew. If this goes on, reconnect it at the page of connections'
        : '';
    } catch (cause) {
      return `: the registration is gone, and could not be made anew (${describeCause(cause)})`;
    }
  }

  async function unmark(place: ConnectionPlace, marked: StoredConnection) {
    await records.replace(place, marked, { ...marked.record, renewal: undefined });
  }

  const isUsable = ({ expiresAt }: ConnectionRecord) =>
    expiresAt === undefined || clock.now() < expiresAt - RESERVE_MS;

  /** Nothing is lost: where the connection stands as it was, its token serves until its end. @throws StoreUnavailable */
  async function fail(
    place: ConnectionPlace,
    server: ConnectionServer,
    said: string,
    cause?: unknown,
  ): Promise<Access> {
    metrics.recordUpstreamTokenRefresh(server.name, 'failed');
    const since = known.beginReading();
    const stored = await records.read(place);
    if (stored === undefined) return describeMissing();
    const { record } = stored;
    const needed = findLoginNeed(record, server);
    if (needed !== undefined) return needed;
    const { host } = new URL(record.tokenUrl);
    const reason = `${server.name}’s token endpoint (${host}) ${said.replace(`${host} `, '')}`;
    warn(server.name, reason, cause);
    if (isUsable(record)) return known.note(place, server, record, since, true);
    return { kind: 'unavailable', reason: `${reason}; the connection is kept` };
  }

  /** The owner must log in again; undefined where the connection has changed meanwhile. @throws StoreUnavailable */
  async function requireLogin(place: ConnectionPlace, standing: StoredConnection, reason: string) {
    const next = { ...standing.record, state: 'login needed' as const, problem: reason };
    const written = await records.replace(place, standing, next);
    if (written === undefined) return undefined;
    known.forget(place);
    audited.loginNeeded(place, reason);
    changes.announce(place, 'login needed');
    return describeLogin(reason);
  }

  return { renew, requireLogin };
}

export const describeMissing = (): Access => ({
  kind: 'missing',
  reason: undefined,
  scopes: undefined,
});

/** Undefined where it can be used. */
export function findLoginNeed(record: ConnectionRecord, server: ConnectionServer) {
  if (record.state === 'login needed') return describeLogin(record.problem);
  return isMadeFor(record, server) ? undefined : describeLogin(describeChanged(server));
}

const describeLogin = (reason: string | undefined): Access => ({
  kind: 'login needed',
  reason,
  scopes: undefined,
});

// §24: what a renewal brought is stored before it is used: it is the only copy, and the tokens before may be worth nothing now.

/** For which the store is asked again while the lock is held. */
const STORING_MS = 15_000;
const PAUSE_MS = 250;

function createNewTokens(
  { clock, log }: Runtime,
  records: ConnectionRecords,
  revokeTokens: Revocation['revokeTokens'],
) {
  /** Keyed by the attempt that they came of. */
  const unsaved = createBoundedMap<string, ServerTokens>('unsavedTokens');

  /** @throws StoreUnavailable */
  async function storeOnce(
    place: ConnectionPlace,
    server: ConnectionServer,
    marked: ConnectionRecord,
    tokens: ServerTokens,
  ): Promise<ConnectionRecord | undefined> {
    for (;;) {
      const stored = await records.read(place);
      const isOthers = stored && isSameAccount(marked, stored.record) === false;
      if (stored === undefined || isOthers) {
        // It was ended meanwhile, or is another account's, and nobody else can end what came since.
        await revokeTokens(server, marked, tokens);
        return undefined;
      }
      if (stored.record.renewal?.attempt !== marked.renewal?.attempt) return undefined;
      const now = clock.now();
      const { refreshToken, scopes, forced } = stored.record;
      const next: ConnectionRecord = {
        ...stored.record,
        ...describeTokens(tokens, now),
        state: 'active',
        problem: undefined,
        refreshToken: tokens.refreshToken ?? refreshToken,
        scopes: tokens.scopes ?? scopes,
        renewal: undefined,
        forced: forced && { ...forced, isRenewed: true },
      };
      if ((await records.replace(place, stored, next)) !== undefined) return next;
    }
  }

  return {
    /** True if those of its renewal came here, and the store did not take them then. */
    hasUnsaved: ({ renewal }: ConnectionRecord) =>
      renewal !== undefined && unsaved.peek(renewal.attempt) !== undefined,
    /**
     * `marked` has the mark of the renewal; `given` is undefined for those that were not saved. Resolves to undefined where they are of
     * no use any more: the connection was ended, or made anew.
     *
     * @throws StoreUnavailable after a while; they are kept in memory then.
     */
    async store(
      place: ConnectionPlace,
      server: ConnectionServer,
      marked: ConnectionRecord,
      given: ServerTokens | undefined,
    ) {
      const attempt = marked.renewal?.attempt ?? '';
      const tokens = given ?? unsaved.get(attempt);
      if (tokens === undefined) return undefined;
      unsaved.set(attempt, tokens);
      const deadline = clock.monotonic() + STORING_MS;
      for (;;) {
        try {
          const stored = await storeOnce(place, server, marked, tokens);
          unsaved.delete(attempt);
          return stored;
        } catch (cause) {
          if (clock.monotonic() >= deadline) {
            log.warn(
              'A renewed token could not be stored, so it is not used. It is kept in memory, and offered to the store with the next call.',
              { server: server.name, cause },
            );
            throw cause;
          }
          await pause(clock, PAUSE_MS);
        }
      }
    },
  };
}

/** What a record says of an access token that has just come. */
export const describeTokens = ({ accessToken, expiresInSeconds }: ServerTokens, now: number) => ({
  accessToken,
  tokenAt: now,
  expiresAt: expiresInSeconds === undefined ? undefined : now + expiresInSeconds * 1000,
  usedAt: now,
});
