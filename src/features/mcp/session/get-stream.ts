// MCP up to 2025-11-25: GET /mcp with MCP_STREAMS=true, and resources/subscribe. Whatever replica
// has the stream, and whatever replica took the subscription.
import { randomUUID } from 'node:crypto';
import type { Clock } from '../../../core/clock.ts';
import { fail } from '../../../core/errors/gateway-error.ts';
import type { Log } from '../../../core/log.ts';
import type { Reply } from '../../../core/message.ts';
import { hashSha256 } from '../../../core/sha256.ts';
import { subscriptionKey } from '../../../core/store/keys.ts';
import type { Store } from '../../../core/store/store.ts';
import type { UserContext } from '../../../core/user-context.ts';
import type { Catalog } from '../catalog/catalog.ts';
import type { EventStream, EventStreams } from '../streaming/listening-streams.ts';
import type { Updates } from '../streaming/resource-updates.ts';
import type { Replicas } from './replicas.ts';

export interface Streams {
  /** The stream of a session; one that it has elsewhere is over. */
  open(sessionId: string, user: UserContext | undefined): Promise<Reply>;
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
  readonly clock: Clock;
  readonly log: Log;
  /** `MCP_SESSION_KEY_PREFIX`. */
  readonly prefix: string;
}

/** From the subscription, or the last change that was told a day or more after it. */
const SUBSCRIPTION_TTL_SECONDS = 604_800;
const RENEW_AFTER_MS = 86_400_000;

/** Sorts after every id of a stream. */
const NEWEST = '~';

interface Own {
  readonly id: string;
  readonly stream: EventStream;
}

export function createStreams(deps: StreamsDeps): Streams {
  const { catalog, store, replicas, streams, updates, clock, log, prefix } = deps;
  const open = new Map<string, Own>();
  let opened = 0;
  let isFailing = false;
  const keyOf = (sessionId: string, uri: string) =>
    subscriptionKey(prefix, sessionId, hashSha256(uri));

  replicas.listen((message) => {
    if (message.about !== 'stream') return;
    const own = open.get(message.sessionId);
    if (own !== undefined && own.id < message.id) own.stream.end();
  });

  async function tell(sessionId: string, stream: EventStream, uri: string): Promise<void> {
    const key = keyOf(sessionId, uri);
    const noted = await store.get(key);
    if (noted === undefined) return;
    stream.say({ method: 'notifications/resources/updated', params: { uri } });
    // Seldom: a set at this moment would undo what unsubscribe does.
    if (clock.now() - Number(noted) > RENEW_AFTER_MS) await note(key);
  }

  function toldAgain(): void {
    isFailing = false;
  }

  function notTold(cause: unknown): void {
    if (!isFailing) {
      log.warn('Clients are not told that resources change: the store does not answer.', { cause });
    }
    isFailing = true;
  }

  /** Sorts by time: of two that come at one moment, everywhere the same one is the newer. */
  function nextId(): string {
    opened += 1;
    return [digits(clock.now()), digits(opened), randomUUID()].join('-');
  }

  const note = (key: string) => store.set(key, String(clock.now()), SUBSCRIPTION_TTL_SECONDS);

  return {
    async open(sessionId, user) {
      const id = nextId();
      // First, so that it does not count against the new one.
      open.get(sessionId)?.stream.end();
      let stop = () => {};
      const stream = streams.open({
        user: user?.sub,
        onEnd() {
          stop();
          if (open.get(sessionId)?.id === id) open.delete(sessionId);
        },
      });
      try {
        stop = updates((uri) => {
          tell(sessionId, stream, uri).then(toldAgain, notTold);
        });
      } catch (error) {
        stream.end();
        throw error;
      }
      open.set(sessionId, { id, stream });
      await replicas.send({ about: 'stream', sessionId, id }).catch((cause: unknown) => {
        stream.end();
        throw cause;
      });
      return stream.reply;
    },

    async end(sessionId) {
      open.get(sessionId)?.stream.end();
      // The session has ended in any case: its streams elsewhere do after their five minutes.
      await replicas
        .send({ about: 'stream', sessionId, id: NEWEST })
        .catch((cause: unknown) =>
          log.warn('A stream of an ended session may be open.', { cause }),
        );
    },

    async subscribe(sessionId, uri) {
      if (!catalog.canWatch(uri)) {
        fail('invalid_params', {
          details: 'params.uri is no resource that tells when it changes',
          data: { uri },
        });
      }
      await note(keyOf(sessionId, uri));
    },

    unsubscribe: (sessionId, uri) => store.delete(keyOf(sessionId, uri)),
  };
}

const digits = (number: number): string => String(number).padStart(16, '0');
