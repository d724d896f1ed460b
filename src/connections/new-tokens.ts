// §24: what a renewal brought is stored before it is used: it is the only copy, and the tokens before may be worth nothing now.
import type { ServerTokens } from '../http/oauth-client/token-answer.ts';
import type { ConnectionServer } from '../mcp/upstream/connections.ts';
import { createBoundedMap } from '../platform/bounded-map.ts';
import { pause } from '../platform/clock.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { ConnectionPlace, ConnectionRecord } from './connection-record.ts';
import type { ConnectionRecords } from './records.ts';
import { isSameAccount, type Revocation } from './servers/revocation.ts';

/** For which the store is asked again while the lock is held. */
const STORING_MS = 15_000;
const PAUSE_MS = 250;
const MAX_UNSAVED = 1000;

export function createNewTokens(
  { clock, log }: Runtime,
  records: ConnectionRecords,
  revokeTokens: Revocation['revokeTokens'],
) {
  /** Keyed by the attempt that they came of. */
  const unsaved = createBoundedMap<string, ServerTokens>(MAX_UNSAVED);

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
    hasUnsaved: ({ renewal }: ConnectionRecord): boolean =>
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
