// MCP up to 2025-11-25, resources/subscribe: which resources a session watches, in the store.

import { fail } from '../../errors/gateway-error.ts';
import type { Clock } from '../../platform/clock.ts';
import { hashSha256 } from '../../platform/ids.ts';
import type { JsonObject } from '../../platform/json.ts';
import { createPassWhenKnown } from '../../platform/single-flight.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { buildSubscriptionKey } from '../../store/keys.ts';
import type { Owner } from '../../store/store.ts';
import type { CatalogListener } from '../catalog/catalog.ts';
import type { IdentifiedCaller, ServedCatalog } from '../catalog/served-catalog.ts';
import { isLessSevere, isLogSeverity, type LogSeverity } from '../protocol/methods.ts';
import type { NotificationStream } from '../streaming/notification-streams.ts';

export interface SessionSubscriptions {
  /** @throws GatewayError `invalid_params` for a resource that does not tell when it changes. */
  subscribe(owner: StreamOwner, uri: string): Promise<void>;
  unsubscribe(owner: StreamOwner, uri: string): Promise<void>;
  /** When the subscription was last saved, in epoch milliseconds; undefined when there is none. */
  findSavedAt(sessionId: string, uri: string): Promise<number | undefined>;
  /** Saves it again when that was long ago. */
  renew(sessionId: string, uri: string, savedAt: number): Promise<void>;
}

/** The owner of a stream, or of a subscription. */
export interface StreamOwner {
  readonly sessionId: string;
  readonly caller: IdentifiedCaller;
  /** Served at the session's path. */
  readonly catalog: ServedCatalog;
}

/** From the subscription, or the last update that was sent a day or more after it. */
const TTL_SECONDS = 604_800;
const RENEW_AFTER_MS = 86_400_000;

export function createSessionSubscriptions({
  config,
  store,
  clock,
}: Runtime): SessionSubscriptions {
  const { keyPrefix } = config.mcp.sessions;
  const buildKey = (sessionId: string, uri: string) =>
    buildSubscriptionKey(keyPrefix, sessionId, hashSha256(uri));

  const save = (sessionId: string, uri: string) =>
    store.set(buildKey(sessionId, uri), String(clock.now()), TTL_SECONDS);

  return {
    async subscribe({ catalog, caller, sessionId }, uri) {
      if (!(await catalog.canWatch(uri, caller))) {
        fail('invalid_params', {
          details: 'params.uri is not a resource that clients can subscribe to',
          data: { uri },
        });
      }
      await save(sessionId, uri);
      await catalog.setWatched(uri, true, caller);
    },

    async unsubscribe({ catalog, caller, sessionId }, uri) {
      await store.delete(buildKey(sessionId, uri));
      await catalog.setWatched(uri, false, caller);
    },

    async findSavedAt(sessionId, uri) {
      const savedAt = await store.get(buildKey(sessionId, uri));
      return savedAt === undefined ? undefined : Number(savedAt);
    },

    async renew(sessionId, uri, savedAt) {
      const now = clock.now();
      if (now - savedAt <= RENEW_AFTER_MS) return;
      // Another replica may have ended it meanwhile.
      const key = buildKey(sessionId, uri);
      await store.compareAndSet(key, String(savedAt), String(now), TTL_SECONDS);
    },
  };
}

// The news of a catalogue that a session hears while its stream is open.

/** Shared by the listeners of all streams. */
export interface ListenerSurroundings {
  readonly clock: Clock;
  readLevel(sessionId: string, user: Owner | undefined): Promise<LogSeverity | undefined>;
  tellUpdate(sessionId: string, stream: NotificationStream, uri: string): void;
  tellCompletion(sessionId: string, stream: NotificationStream, elicitationId: string): void;
}

/** A class: thousands of them stand for minutes, and closures would take four times the memory. */
export class SessionListener implements CatalogListener {
  private readonly stream: NotificationStream;
  private readonly sessionId: string;
  private readonly user: Owner | undefined;
  private readonly surroundings: ListenerSurroundings;
  /** Most sessions hear no message of a server: made for the first one. */
  private log: ((params: JsonObject) => void) | undefined;

  constructor(
    stream: NotificationStream,
    sessionId: string,
    user: Owner | undefined,
    surroundings: ListenerSurroundings,
  ) {
    this.stream = stream;
    this.sessionId = sessionId;
    this.user = user;
    this.surroundings = surroundings;
  }

  listChanged(list: 'tools' | 'prompts' | 'resources'): void {
    this.stream.send({ method: `notifications/${list}/list_changed`, params: {} });
  }

  resourceUpdated(uri: string): void {
    this.surroundings.tellUpdate(this.sessionId, this.stream, uri);
  }

  logged(params: JsonObject): void {
    const { stream, sessionId, user, surroundings } = this;
    this.log ??= createStreamLog(surroundings.clock, stream, () =>
      surroundings.readLevel(sessionId, user),
    );
    this.log(params);
  }

  elicitationCompleted(elicitationId: string): void {
    this.surroundings.tellCompletion(this.sessionId, this.stream, elicitationId);
  }
}

// MCP "Logging": messages that belong to no call, on the stream of a session.

interface LogMessage {
  readonly level: LogSeverity;
  readonly logger: string | undefined;
  readonly data: unknown;
}

/**
 * Takes params of `notifications/message` as a server wrote them; what does not fit is dropped. `readLevel` says what the
 * session's client asked for last; undefined where the session has ended.
 */
function createStreamLog(
  clock: Clock,
  stream: NotificationStream,
  readLevel: () => Promise<LogSeverity | undefined>,
): (params: JsonObject) => void {
  const passWhenKnown = createPassWhenKnown<LogMessage, LogSeverity | undefined>({
    clock,
    learn: readLevel,
    pass(params, wanted) {
      if (wanted === undefined || isLessSevere(params.level, wanted)) return;
      stream.sendIfRoom({ method: 'notifications/message', params });
    },
  });

  return function log({ level, logger, data }) {
    if (!isLogSeverity(level)) return;
    passWhenKnown({ level, logger: typeof logger === 'string' ? logger : undefined, data });
  };
}
