// MCP up to 2025-11-25: GET /mcp with MCP_STREAMS=true, and resources/subscribe. Whatever replica
// has the stream, and whatever replica took the subscription.
import { randomUUID } from 'node:crypto';
import type { Clock } from '../../../core/clock.ts';
import { fail } from '../../../core/errors/gateway-error.ts';
import type { Log } from '../../../core/log.ts';
import { hashSha256 } from '../../../core/sha256.ts';
import { subscriptionKey } from '../../../core/store/keys.ts';
import type { Store } from '../../../core/store/store.ts';
import type { UserContext } from '../../../core/user-context.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { StreamResponse } from '../protocol/response.ts';
import type { NotificationStream, NotificationStreams } from '../streaming/notification-streams.ts';
import type { ResourceUpdates } from '../streaming/resource-updates.ts';
import type { Replicas } from './replicas.ts';

export interface SessionStreams {
  /** The stream of a session; one that it has elsewhere is over. */
  open(sessionId: string, user: UserContext | undefined): Promise<StreamResponse>;
  /** Ends the session's stream, wherever it is. */
  end(sessionId: string): Promise<void>;
  /** @throws GatewayError `invalid_params` for a resource that does not tell when it changes. */
  subscribe(sessionId: string, uri: string): Promise<void>;
  unsubscribe(sessionId: string, uri: string): Promise<void>;
}

export interface SessionStreamsDeps {
  readonly catalog: Catalog;
  readonly store: Pick<Store, 'get' | 'set' | 'delete'>;
  readonly replicas: Replicas;
  readonly notificationStreams: NotificationStreams;
  readonly resourceUpdates: ResourceUpdates;
  readonly clock: Clock;
  readonly log: Log;
  /** `MCP_SESSION_KEY_PREFIX`. */
  readonly prefix: string;
}

/** From the subscription, or the last update that was sent a day or more after it. */
const SUBSCRIPTION_TTL_SECONDS = 604_800;
const RENEW_AFTER_MS = 86_400_000;

/** Sorts after every id of a stream. */
const AFTER_ALL_IDS = '~';

interface OpenStream {
  readonly id: string;
  readonly stream: NotificationStream;
}

export function createSessionStreams(deps: SessionStreamsDeps): SessionStreams {
  const { catalog, store, replicas, notificationStreams, resourceUpdates, clock, log, prefix } =
    deps;
  const openStreams = new Map<string, OpenStream>();
  let openedCount = 0;
  let isFailing = false;
  const keyOf = (sessionId: string, uri: string) =>
    subscriptionKey(prefix, sessionId, hashSha256(uri));

  replicas.listen((message) => {
    if (message.about !== 'stream') return;
    const open = openStreams.get(message.sessionId);
    if (open !== undefined && open.id < message.id) open.stream.end();
  });

  async function sendUpdate(
    sessionId: string,
    stream: NotificationStream,
    uri: string,
  ): Promise<void> {
    const key = keyOf(sessionId, uri);
    const subscribedAt = await store.get(key);
    if (subscribedAt === undefined) return;
    stream.send({ method: 'notifications/resources/updated', params: { uri } });
    // Seldom: a set at this moment would undo what unsubscribe does.
    if (clock.now() - Number(subscribedAt) > RENEW_AFTER_MS) await saveSubscription(key);
  }

  function noteSuccess(): void {
    isFailing = false;
  }

  function reportFailure(cause: unknown): void {
    if (!isFailing) {
      log.warn('Subscribers are not told that resources have changed: the store does not answer.', {
        cause,
      });
    }
    isFailing = true;
  }

  /** Sorts by time: of two that come at one moment, everywhere the same one is the newer. */
  function nextId(): string {
    openedCount += 1;
    return [toDigits(clock.now()), toDigits(openedCount), randomUUID()].join('-');
  }

  const saveSubscription = (key: string) =>
    store.set(key, String(clock.now()), SUBSCRIPTION_TTL_SECONDS);

  return {
    async open(sessionId, user) {
      const id = nextId();
      // First, so that it does not count against the new one.
      openStreams.get(sessionId)?.stream.end();
      let unsubscribe = () => {};
      const stream = notificationStreams.open({
        user: user?.sub,
        onEnd() {
          unsubscribe();
          if (openStreams.get(sessionId)?.id === id) openStreams.delete(sessionId);
        },
      });
      try {
        unsubscribe = resourceUpdates.subscribe((uri) => {
          sendUpdate(sessionId, stream, uri).then(noteSuccess, reportFailure);
        });
      } catch (error) {
        stream.end();
        throw error;
      }
      openStreams.set(sessionId, { id, stream });
      await replicas.send({ about: 'stream', sessionId, id }).catch((cause: unknown) => {
        stream.end();
        throw cause;
      });
      return stream.response;
    },

    async end(sessionId) {
      openStreams.get(sessionId)?.stream.end();
      // The session has ended in any case: its streams elsewhere do after their five minutes.
      await replicas
        .send({ about: 'stream', sessionId, id: AFTER_ALL_IDS })
        .catch((cause: unknown) =>
          log.warn('A stream of an ended session may still be open.', { cause }),
        );
    },

    async subscribe(sessionId, uri) {
      if (!catalog.canWatch(uri)) {
        fail('invalid_params', {
          details: 'params.uri is not a resource that clients can subscribe to',
          data: { uri },
        });
      }
      await saveSubscription(keyOf(sessionId, uri));
    },

    unsubscribe: (sessionId, uri) => store.delete(keyOf(sessionId, uri)),
  };
}

const toDigits = (number: number): string => String(number).padStart(16, '0');
