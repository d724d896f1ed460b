// §24: what a renewal brought is stored before it is used: it is the only copy, and the tokens before may be worth nothing now.
import type { ServerTokens } from '../http/oauth-client/token-answer.ts';
import type { ConnectionServer } from '../mcp/upstream/connection.ts';
import { createBoundedMap } from '../platform/bounded-map.ts';
import { pause } from '../platform/clock.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { ConnectionPlace, ConnectionRecord } from './connection-record.ts';
import type { ConnectionRecords } from './records.ts';
import { isSameAccount, type RevokeServerTokens } from './servers/revocation.ts';

export interface NewTokens {
  /** True if those of its renewal came here, and the store did not take them then. */
  hasUnsaved(record: ConnectionRecord): boolean;
  /**
   * Undefined where they are of no use any more: the connection was ended, or made anew.
   *
   * @throws StoreUnavailable after a while; they are kept in memory then.
   */
  store(renewed: RenewedConnection): Promise<ConnectionRecord | undefined>;
}

export interface RenewedConnection {
  readonly place: ConnectionPlace;
  readonly server: ConnectionServer;
  /** With the mark of the renewal. */
  readonly marked: ConnectionRecord;
  /** Undefined for those that were not saved. */
  readonly tokens: ServerTokens | undefined;
}

/** For which the store is asked again while the lock is held. */
const STORING_MS = 15_000;
const PAUSE_MS = 250;
const MAX_UNSAVED = 1000;

export function createNewTokens(
  { clock, log }: Runtime,
  records: ConnectionRecords,
  revokeTokens: RevokeServerTokens,
): NewTokens {
  /** Keyed by the attempt that they came of. */
  const unsaved = createBoundedMap<string, ServerTokens>(MAX_UNSAVED);

  /** @throws StoreUnavailable */
  async function storeOnce(
    { place, server, marked }: RenewedConnection,
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
      const next = applyTokens(stored.record, tokens, clock.now());
      if ((await records.replace(place, stored, next)) !== undefined) return next;
    }
  }

  return {
    hasUnsaved: ({ renewal }) =>
      renewal !== undefined && unsaved.peek(renewal.attempt) !== undefined,
    async store(renewed) {
      const attempt = renewed.marked.renewal?.attempt ?? '';
      const tokens = renewed.tokens ?? unsaved.get(attempt);
      if (tokens === undefined) return undefined;
      unsaved.set(attempt, tokens);
      const deadline = clock.monotonic() + STORING_MS;
      for (;;) {
        try {
          const stored = await storeOnce(renewed, tokens);
          unsaved.delete(attempt);
          return stored;
        } catch (cause) {
          if (clock.monotonic() >= deadline) {
            log.warn(
              'A renewed token could not be stored, so it is not used. It is kept in memory, and offered to the store with the next call.',
              { server: renewed.server.name, cause },
            );
            throw cause;
          }
          await pause(clock, PAUSE_MS);
        }
      }
    },
  };
}

function applyTokens(
  record: ConnectionRecord,
  { accessToken, refreshToken, expiresInSeconds, scopes }: ServerTokens,
  now: number,
): ConnectionRecord {
  return {
    ...record,
    state: 'active',
    problem: undefined,
    accessToken,
    tokenAt: now,
    expiresAt: expiresInSeconds === undefined ? undefined : now + expiresInSeconds * 1000,
    refreshToken: refreshToken ?? record.refreshToken,
    scopes: scopes ?? record.scopes,
    usedAt: now,
    renewal: undefined,
    forced: record.forced && { ...record.forced, isRenewed: true },
  };
}
