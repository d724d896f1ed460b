// MCP up to 2025-11-25: GET /mcp with MCP_STREAMS=true, and resources/subscribe. Whatever replica
// has the stream, and whatever replica took the subscription.
import { randomUUID } from 'node:crypto';
import { fail } from '../../../core/errors/gateway-error.ts';
import type { Log } from '../../../core/log.ts';
import type { Reply } from '../../../core/message.ts';
import { hashOf } from '../../../core/seal/seal.ts';
import { subscriptionKey } from '../../../core/store/keys.ts';
import type { Store } from '../../../core/store/store.ts';
import type { Catalog } from '../catalog.ts';
import type { EventStream, EventStreams } from '../event-streams.ts';
import type { Replicas } from '../replicas.ts';
import type { Updates } from '../updates.ts';

export interface Streams {
  /** The stream of a session; one that it has elsewhere is over. */
  open(sessionId: string): Promise<Reply>;
  /** Ends the session's stream, wherever it is. */
  end(sessionId: string): Promise<void>;
  /** @throws GatewayError `invalid_params` for a resource that does not tell when it changes. */
  subscribe(sessionId: string, uri: string): Promise<void>;
  unsubscribe(sessionId: string, uri: string): Promise<void>;
}

export interface StreamsDeps {
  readonly catalog: Catalog;
  readonly store: Pick<Store, 'get' | 'set' | 'delete'>;
  readonly replicas: Replicas;
  readonly streams: EventStreams;
  readonly updates: Updates;
  readonly log: Log;
  /** `MCP_SESSION_KEY_PREFIX`. */
  readonly prefix: string;
}

/** From the last change that was told, or from the subscription. */
const SUBSCRIPTION_TTL_SECONDS = 604_800;

interface Own {
  readonly id: string;
  readonly stream: EventStream;
}

export function createStreams(deps: StreamsDeps): Streams {
  const { catalog, store, replicas, streams, updates, log, prefix } = deps;
  const open = new Map<string, Own>();
  const keyOf = (sessionId: string, uri: string) => subscriptionKey(prefix, sessionId, hashOf(uri));

  replicas.hear((word) => {
    if (word.about !== 'stream') return;
    const own = open.get(word.sessionId);
    if (own !== undefined && own.id !== word.id) own.stream.end();
  });

  async function tell(sessionId: string, stream: EventStream, uri: string): Promise<void> {
    const key = keyOf(sessionId, uri);
    if ((await store.get(key)) === undefined) return;
    stream.say({ method: 'notifications/resources/updated', params: { uri } });
    await store.set(key, uri, SUBSCRIPTION_TTL_SECONDS);
  }

  return {
    async open(sessionId) {
      const id = randomUUID();
      const stop = updates((uri) => {
        tell(sessionId, stream, uri).catch((cause: unknown) =>
          log.warn('A client was not told that a resource changed: the store does not answer.', {
            cause,
          }),
        );
      });
      const stream = streams.open(() => {
        stop();
        if (open.get(sessionId)?.id === id) open.delete(sessionId);
      });
      open.get(sessionId)?.stream.end();
      open.set(sessionId, { id, stream });
      await replicas.tell({ about: 'stream', sessionId, id }).catch((cause: unknown) => {
        stream.end();
        throw cause;
      });
      return stream.reply;
    },

    end: (sessionId) => replicas.tell({ about: 'stream', sessionId, id: '' }),

    async subscribe(sessionId, uri) {
      if (!catalog.canWatch(uri)) {
        fail('invalid_params', {
          details: 'params.uri is no resource that tells when it changes',
          data: { uri },
        });
      }
      await store.set(keyOf(sessionId, uri), uri, SUBSCRIPTION_TTL_SECONDS);
    },

    unsubscribe: (sessionId, uri) => store.delete(keyOf(sessionId, uri)),
  };
}
