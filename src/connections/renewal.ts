// §24: renewal of access tokens: by one replica at a time, and the response is stored before it is used. After a lost response the
// same request is sent again: many authorization servers accept a refresh token until its successor is used, or for some minutes.
// Others answer
// `invalid_grant`, and a login is needed, since there is no other way to recover the lost tokens.
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
import { isSameAccount, TooManyRequests } from './servers/token-endpoint.ts';

export type TokenRenewal = ReturnType<typeof createRenewal>;

/** A service behind a server may answer 401 to one caller on every call, while other callers use the same token. */
export const FORCED_AGAIN_MS = 60_000;

export function createRenewal(
  runtime: Runtime,
  { records, known, changes, audited }: KeptConnections,
  { clients, requestTokens, revokeTokens, replaceClient }: AuthorizationServers,
) {
  const { clock, log, metrics, config } = runtime;
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
   * Resolves to the stored token if it is valid, else to a new one. A `refused` token (401) is replaced once a minute at most:
   * until then it is returned again, since other callers may use it successfully. Never rejects.
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

  /** Undefined if a new token is needed. */
  async function look(
    place: ConnectionPlace,
    server: ConnectionServer,
    isElsewhere: boolean,
    refused: string | undefined,
  ): Promise<Access | undefined> {
    const reading = known.beginReading();
    const stored = await records.read(place);
    if (stored === undefined) return MISSING;
    const { record } = stored;
    const needed = findLoginNeed(record, server);
    if (needed !== undefined) return needed;
    // Waits for a renewal in progress.
    if (record.accessToken === refused && (mayForce(record) || record.renewal !== undefined))
      return undefined;
    const until = isElsewhere ? (record.expiresAt ?? 0) - RESERVE_MS : findRenewalTime(record);
    return clock.now() < until ? known.note(place, server, record, reading) : undefined;
  }

  const mayForce = (record: ConnectionRecord) =>
    newTokens.hasUnsaved(record) ||
    (record.refreshToken !== undefined &&
      (record.forced === undefined || clock.now() - record.forced.at >= FORCED_AGAIN_MS));

  /** Holds the lock. */
  async function run(
    place: ConnectionPlace,
    server: ConnectionServer,
    refused: string | undefined,
  ): Promise<Access> {
    const stored = await records.read(place);
    if (stored === undefined) return MISSING;
    const { record } = stored;
    if (newTokens.hasUnsaved(record)) return useNew(place, server, record, undefined);
    const now = clock.now();
    const isForced = record.accessToken === refused && now < findRenewalTime(record);
    if (isForced && !mayForce(record)) return toAccess(record);
    const { refreshToken } = record;
    if (refreshToken === undefined) {
      // There is no way to get another token: this one is used until it expires.
      if (isUsable(record)) return toAccess(record);
      metrics.recordUpstreamTokenRefresh(server.name, 'login_needed');
      const reason = `the token for ${server.name} has expired, and its authorization server gave none to renew it: log in again`;
      const required = await requireLogin(place, stored, reason);
      return required ?? { kind: 'unavailable', reason: `${reason}; it has just changed` };
    }
    const renewal = { attempt: generateSecret(), at: now };
    const next = { ...record, renewal, ...(isForced && { forced: { at: now, isRenewed: false } }) };
    const marked = await records.replace(place, stored, next);
    // The connection was ended, or replaced by a new one.
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
      answer = await requestTokens(record, client, form, server);
    } catch (error) {
      // The mark stays while the outcome is unknown.
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
    const more = isForgotten ? await replaceForgotten(place, server, record) : '';
    return fail(place, server, answer.said + more);
  }

  /** Continues with the stored connection, whoever wrote it. */
  const useStored = async (place: ConnectionPlace, server: ConnectionServer) =>
    (await look(place, server, false, undefined)) ?? {
      kind: 'unavailable',
      reason: `the connection to ${server.name} has just changed`,
    };

  /** Returns tokens only once they are stored; `tokens` is undefined for those that could not be stored earlier. */
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
   * Describes the outcome. The connection keeps its client: the tokens are useless to another one, and the server may have been
   * wrong. If it was right, only a new login helps.
   */
  async function replaceForgotten(
    { owner }: ConnectionPlace,
    server: ConnectionServer,
    record: ConnectionRecord,
  ) {
    try {
      if (!(await replaceClient(server, record))) return '';
      const who =
        owner === 'shared' ? 'An operator of this service has to connect it' : 'Log in to it';
      const page = `${config.server.baseUrl}/connections/${server.name}`;
      return `: the registration is gone; the gateway has registered again. ${who} again at ${page} if this continues`;
    } catch (cause) {
      return `: the registration is gone, and registering again failed (${describeCause(cause)})`;
    }
  }

  async function unmark(place: ConnectionPlace, marked: StoredConnection) {
    await records.replace(place, marked, { ...marked.record, renewal: undefined });
  }

  const isUsable = ({ expiresAt }: ConnectionRecord) =>
    expiresAt === undefined || clock.now() < expiresAt - RESERVE_MS;

  /** Nothing is lost: the token of an unchanged connection is used until it expires. @throws StoreUnavailable */
  async function fail(
    place: ConnectionPlace,
    server: ConnectionServer,
    said: string,
    cause?: unknown,
  ): Promise<Access> {
    metrics.recordUpstreamTokenRefresh(server.name, 'failed');
    const reading = known.beginReading();
    const stored = await records.read(place);
    if (stored === undefined) return MISSING;
    const { record } = stored;
    const needed = findLoginNeed(record, server);
    if (needed !== undefined) return needed;
    const { host } = new URL(record.tokenUrl);
    const reason = `${server.name}’s token endpoint (${host}) ${said.replace(`${host} `, '')}`;
    warn(server.name, reason, cause);
    if (isUsable(record)) return known.note(place, server, record, { ...reading, hasFailed: true });
    return { kind: 'unavailable', reason: `${reason}; the connection is kept` };
  }

  /** The owner must log in again; undefined if the connection has changed in the meantime. @throws StoreUnavailable */
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

export const MISSING: Access = { kind: 'missing', reason: undefined, scopes: undefined };

/** Undefined if the connection can be used. */
export function findLoginNeed(record: ConnectionRecord, server: ConnectionServer) {
  if (record.state === 'login needed') return describeLogin(record.problem);
  return isMadeFor(record, server) ? undefined : describeLogin(describeChanged(server));
}

const describeLogin = (reason: string | undefined): Access => ({
  kind: 'login needed',
  reason,
  scopes: undefined,
});

// §24: new tokens are stored before they are used: they are the only copy, and the former tokens may be revoked by now.

/** The time that writes are retried for while the lock is held. */
const STORING_MS = 15_000;
const PAUSE_MS = 250;

function createNewTokens(
  { clock, log }: Runtime,
  records: ConnectionRecords,
  revokeTokens: AuthorizationServers['revokeTokens'],
) {
  /** Keyed by renewal attempt. */
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
        // The connection was ended meanwhile, or belongs to another account. No user could end these tokens.
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
    /** True if the new tokens were received here, but could not be stored. */
    hasUnsaved: ({ renewal }: ConnectionRecord) =>
      renewal !== undefined && unsaved.peek(renewal.attempt) !== undefined,
    /**
     * `marked` has the mark of the renewal; `given` is undefined for tokens that were not stored earlier. Resolves to undefined
     * if they are obsolete: the connection was ended, or replaced by a new one.
     *
     * @throws StoreUnavailable after a while; the tokens stay in memory then.
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

/** Members of a record that describe a new access token. */
export const describeTokens = ({ accessToken, expiresInSeconds }: ServerTokens, now: number) => ({
  accessToken,
  tokenAt: now,
  expiresAt: expiresInSeconds === undefined ? undefined : now + expiresInSeconds * 1000,
  usedAt: now,
});
