// MCP up to 2025-11-25: GET /mcp with MCP_STREAMS=true, and resources/subscribe; stream and subscription may be on different
// replicas.

import { randomUUID } from 'node:crypto';
import { fail } from '../../errors/gateway-error.ts';
import { hashSha256 } from '../../platform/ids.ts';
import type { JsonObject } from '../../platform/json.ts';
import { createPassWhenKnown } from '../../platform/single-flight.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { buildStreamNumberKey, buildSubscriptionKey, nameOwner } from '../../store/keys.ts';
import { createRecords, numberFormat } from '../../store/records.ts';
import type { Owner } from '../../store/store.ts';
import type { CatalogListener } from '../catalog/catalog.ts';
import type { IdentifiedCaller, ServedCatalog } from '../catalog/served-catalog.ts';
import { isLessSevere, isLogSeverity, type LogSeverity } from '../protocol/methods.ts';
import type { NotificationStream, NotificationStreams } from '../streaming/notification-streams.ts';
import type { StreamResponse } from '../streaming/response-stream.ts';
import type { KeptStreams } from './kept-streams.ts';
import type { SessionQuestions } from './questions.ts';
import { RESUMABLE_SINCE } from './resumable-events.ts';
import { type EarlierStream, holdBack } from './resumptions.ts';
import type { ClientSessions, McpReplicas } from './sessions.ts';

interface OpenStream {
  readonly id: string;
  readonly stream: NotificationStream;
}

export function createSessionStreams(
  runtime: Runtime,
  notificationStreams: NotificationStreams,
  replicas: McpReplicas,
  {
    sessions,
    questions,
    keptStreams,
  }: {
    readonly sessions: ClientSessions;
    readonly questions: SessionQuestions;
    readonly keptStreams: KeptStreams;
  },
) {
  const { config, store, clock, log } = runtime;
  const { keyPrefix } = config.mcp.sessions;
  const subscriptions = createSessionSubscriptions(runtime);
  const numbers = createRecords(store, numberFormat);
  const openStreams = new Map<string, OpenStream>();
  let isFailing = false;

  replicas.listen((message) => {
    if (message.about !== 'stream') return;
    const { sessionId, id } = message;
    const open = openStreams.get(sessionId);
    if (open === undefined) return;
    if (open.id < id) open.stream.end();
    if (open.id <= id) return;
    replicas
      .send({ about: 'stream', sessionId, id: open.id })
      .catch((cause: unknown) => log.debug('A session may have two streams.', { cause }));
  });

  /**
   * The stream with the highest id wins: the one opened last. A counter in the store orders them across replicas, independent of
   * clocks. A higher id may arrive before the lower stream is open: a replica that receives a lower id than that of its open
   * stream sends its own again, which also makes up for lost messages. Numbers start from the time, so that newer streams have
   * higher ones even if the store has lost the counter.
   */
  const generateId = (sessionId: string) =>
    numbers.update(buildStreamNumberKey(keyPrefix, sessionId), (last = 0) => {
      const number = Math.max(clock.now(), last + 1);
      const id = `${String(number).padStart(DIGITS, '0')}-${randomUUID()}`;
      return { value: number, ttlSeconds: NUMBER_TTL_SECONDS, result: id };
    });

  /** A separate function, so that an open stream does not keep its caller alive. */
  function createStop(sessionId: string, id: string, stopListening: () => void) {
    return () => {
      if (openStreams.get(sessionId)?.id === id) openStreams.delete(sessionId);
      stopListening();
    };
  }

  /**
   * Sends the changes to a catalogue to the stream of a session. A class: thousands stay open for minutes, and closures would
   * take four times the memory.
   */
  class SessionListener implements CatalogListener {
    private readonly stream: NotificationStream;
    private readonly sessionId: string;
    private readonly user: Owner | undefined;
    /** Created for the first log message: most sessions receive none. */
    private passLog: ((message: LogMessage) => void) | undefined = undefined;

    constructor(stream: NotificationStream, sessionId: string, user: Owner | undefined) {
      this.stream = stream;
      this.sessionId = sessionId;
      this.user = user;
    }

    listChanged(list: 'tools' | 'prompts' | 'resources'): void {
      this.stream.send({ method: `notifications/${list}/list_changed`, params: {} });
    }

    async resourceUpdated(uri: string): Promise<void> {
      const { sessionId } = this;
      try {
        const savedAt = await subscriptions.findSavedAt(sessionId, uri);
        if (savedAt !== undefined) {
          this.sendNow('notifications/resources/updated', { uri });
          await subscriptions.renew(sessionId, uri, savedAt);
        }
        isFailing = false;
      } catch (cause) {
        if (!isFailing)
          log.warn(
            'Subscribers are not told that resources have changed: the store does not answer.',
            { cause },
          );
        isFailing = true;
      }
    }

    /** MCP "Logging": log messages from servers outside calls; invalid ones are dropped. */
    logged({ level, logger, data }: JsonObject): void {
      if (!isLogSeverity(level)) return;
      this.passLog ??= createPassWhenKnown<LogMessage, LogSeverity | undefined>({
        clock,
        // Undefined once the session has ended.
        learn: () => sessions.readLogLevel(this.sessionId, this.user),
        pass: (params, wanted) => {
          if (wanted === undefined || isLessSevere(params.level, wanted)) return;
          this.stream.sendIfRoom({ method: 'notifications/message', params });
        },
      });
      this.passLog({ level, logger: typeof logger === 'string' ? logger : undefined, data });
    }

    async elicitationCompleted(elicitationId: string, server?: string): Promise<void> {
      try {
        if (!(await questions.takeElicitation(this.sessionId, elicitationId, server))) return;
        this.sendNow('notifications/elicitation/complete', { elicitationId });
      } catch (cause) {
        log.debug('A session is not told that a page was dealt with.', { cause });
      }
    }

    /** Sends after a wait: the client may have reconnected in the meantime. */
    private sendNow(method: string, params: JsonObject) {
      const current = openStreams.get(this.sessionId)?.stream ?? this.stream;
      current.send({ method, params });
    }
  }

  return {
    /**
     * Opens the stream of a session, which replaces any other. Begins with the replay of an earlier one, if the client resumes
     * that.
     */
    async open(owner: StreamOwner, earlier?: EarlierStream): Promise<StreamResponse> {
      const { sessionId, caller, catalog } = owner;
      const id = await generateId(sessionId);
      const { protocolVersion = '' } = caller.session ?? {};
      const openKept = (opened: Pick<NotificationStream, 'end'>) =>
        keptStreams.start({
          sessionId,
          user: caller.user && nameOwner(caller.user),
          protocolVersion,
          requestId: undefined,
          isOfSession: true,
          abandon: createAbandon(opened),
        });
      let sendMissed: (() => Promise<void>) | undefined;
      // Before the new one is counted.
      openStreams.get(sessionId)?.stream.end();
      const stream = notificationStreams.open({
        user: caller.user,
        ...(protocolVersion >= RESUMABLE_SINCE && { openChannel: openKept }),
        listen(opened) {
          const { heard, release } = holdBack(opened, earlier);
          sendMissed = release;
          const user = caller.user && { sub: caller.user.sub, issuer: caller.user.issuer };
          const listener = new SessionListener(heard, sessionId, user);
          return createStop(sessionId, id, catalog.listen(caller, listener));
        },
      });
      openStreams.set(sessionId, { id, stream });
      await replicas.send({ about: 'stream', sessionId, id }).catch((cause: unknown) => {
        stream.end();
        throw cause;
      });
      void sendMissed?.();
      return stream.response;
    },

    /** Ends the session's stream, on any replica. */
    async end(sessionId: string): Promise<void> {
      openStreams.get(sessionId)?.stream.end();
      // Best effort: streams on other replicas end after five minutes at the latest.
      await replicas
        .send({ about: 'stream', sessionId, id: AFTER_ALL_IDS })
        .catch((cause: unknown) =>
          log.warn('A stream of an ended session may still be open.', { cause }),
        );
    },

    subscribe: subscriptions.subscribe,
    unsubscribe: subscriptions.unsubscribe,
  };
}

/** A separate function, so that an open stream does not keep its caller alive. */
const createAbandon = (stream: Pick<NotificationStream, 'end'>) => () => stream.end();

// MCP "Streamable HTTP" up to 2025-11-25: a session has one stream across all replicas.

/** The end of a session: sorts after all stream ids. */
const AFTER_ALL_IDS = '~';

/** Longer than the lifetime of a stream. */
const NUMBER_TTL_SECONDS = 600;
const DIGITS = 16;

// MCP up to 2025-11-25, resources/subscribe: the subscriptions of sessions, in the store.

/** The owner of a stream, or of a subscription. */
export interface StreamOwner {
  readonly sessionId: string;
  readonly caller: IdentifiedCaller;
  /** The catalogue on the session's path. */
  readonly catalog: ServedCatalog;
}

/** Time to live, from the subscription or its last renewal. */
const TTL_SECONDS = 604_800;
const RENEW_AFTER_MS = 86_400_000;

export function createSessionSubscriptions({ config, store, clock }: Runtime) {
  const { keyPrefix } = config.mcp.sessions;
  const buildKey = (sessionId: string, uri: string) =>
    buildSubscriptionKey(keyPrefix, sessionId, hashSha256(uri));

  return {
    /** @throws GatewayError `invalid_params` for a resource without change notifications. */
    async subscribe({ catalog, caller, sessionId }: StreamOwner, uri: string): Promise<void> {
      if (!(await catalog.canWatch(uri, caller)))
        fail('invalid_params', {
          details: 'params.uri is not a resource that clients can subscribe to',
          data: { uri },
        });
      await store.set(buildKey(sessionId, uri), String(clock.now()), TTL_SECONDS);
      await catalog.setWatched(uri, true, caller);
    },

    async unsubscribe({ catalog, caller, sessionId }: StreamOwner, uri: string): Promise<void> {
      await store.delete(buildKey(sessionId, uri));
      await catalog.setWatched(uri, false, caller);
    },

    /** The time of the last save, in epoch milliseconds; undefined without a subscription. */
    async findSavedAt(sessionId: string, uri: string): Promise<number | undefined> {
      const savedAt = await store.get(buildKey(sessionId, uri));
      return savedAt === undefined ? undefined : Number(savedAt);
    },

    /** Renews a subscription that was saved long ago. */
    async renew(sessionId: string, uri: string, savedAt: number): Promise<void> {
      const now = clock.now();
      if (now - savedAt <= RENEW_AFTER_MS) return;
      // Another replica may have ended it in the meantime.
      const key = buildKey(sessionId, uri);
      await store.compareAndSet(key, String(savedAt), String(now), TTL_SECONDS);
    },
  };
}

interface LogMessage {
  readonly level: LogSeverity;
  readonly logger: string | undefined;
  readonly data: unknown;
}
