// §18.5, §22.1: all tokens are made for the gateway's own client at the provider. Where something depends on
// the client that got one, that is noted when it is handed out.
import type { Clock } from '../../platform/clock.ts';
import { parseObject } from '../../platform/json.ts';
import type { Log } from '../../platform/log.ts';
import { hashSha256 } from '../../platform/sha256.ts';
import { buildTokenClientKey } from '../../store/keys.ts';
import type { KeyValue } from '../../store/store.ts';

export interface NoteClientDeps {
  readonly store: Pick<KeyValue, 'set'>;
  /** Whether anything depends now on which tokens this client got. */
  readonly isNeeded: (clientId: string) => boolean;
  readonly clock: Clock;
  readonly log: Log;
}

/** Never rejects: without the note the token works, only its client is not known. */
export type NoteClient = (token: unknown, clientId: string) => Promise<void>;

export function createNoteClient({ store, isNeeded, clock, log }: NoteClientDeps): NoteClient {
  return async function noteClient(token, clientId) {
    if (typeof token !== 'string' || !isNeeded(clientId)) return;
    const ttlSeconds = Math.ceil(readExpiry(token) - clock.now() / 1000) + TOLERANCE_SECONDS;
    if (!(ttlSeconds > TOLERANCE_SECONDS)) return;
    try {
      await store.set(buildTokenClientKey(hashSha256(token)), clientId, ttlSeconds);
    } catch (error) {
      log.warn(
        'The store could not note which client got a token. Until it is refreshed, rules about clients allow it nothing, servers with identity are not told the client, and it is of no use to operators.',
        { client: clientId, cause: error },
      );
    }
  };
}

/** A token counts a little longer than it says, because clocks differ. */
const TOLERANCE_SECONDS = 300;

/** Epoch seconds. The token came from the provider itself, by TLS: its claims need no check. */
function readExpiry(token: string): number {
  const claims = parseObject(Buffer.from(token.split('.')[1] ?? '', 'base64url'));
  return typeof claims?.exp === 'number' ? claims.exp : 0;
}
