// §18.3: HTTP with SSE (servers of 2024-11-05): each client session has its own connection, in this process.

import type { LogSeverity } from '../../mcp/protocol/methods.ts';
import {
  readInitializeResult,
  toInitializeParams,
  toSessionParams,
} from '../../mcp/upstream/envelope.ts';
import {
  GATEWAY_CALLER,
  throwAsUnsent,
  type UpstreamCaller,
  UpstreamError,
  type UpstreamRuntime,
} from '../../mcp/upstream/upstream.ts';
import type { Clock } from '../../platform/clock.ts';
import { RawJson, writeExactJson } from '../../platform/exact-json.ts';
import type { JsonObject } from '../../platform/json.ts';
import { createWarnThrottle } from '../../platform/throttle.ts';
import type { ServerNotification } from '../messages/server-message.ts';
import { createRpcConnection } from '../stdio/rpc-connection.ts';
import type { ProcessShare } from '../transport/process-share.ts';
import type { ExchangeEnd, ExchangeListener } from './exchange.ts';
import { createInvalidError, isUnauthorizedError, toRefusal } from './failures.ts';
import type { HttpUpstreamConfig } from './http-config.ts';
import { createServerListeners, type StreamConsumer } from './listeners.ts';
import { nameSharer } from './sessions.ts';
import { createDescriptions, type HttpLink, type Protocol } from './stateless-protocol.ts';

interface Entry {
  readonly opening: Promise<SseChannel>;
  /** The client session with which this channel ends; undefined if the channel is shared. */
  readonly sessionId: string | undefined;
  usedAt: number;
  /** The time of the last check that the client's session is alive. */
  askedAt: number;
  /** The number of unanswered requests and of listeners. */
  users: number;
  /** True if the channel's token may be refused: the next request opens another channel, which shows it. */
  isLeft: boolean;
  logLevel: LogSeverity | undefined;
}

const SWEEP_MS = 60_000;
const SHARED_IDLE_MS = 900_000;
/** Interval between checks that the session is alive, while there are no calls. */
const ASK_AFTER_MS = 300_000;
/** Each channel is a persistent connection. */
const MAX_CHANNELS = 10_000;
const SET_LEVEL_MS = 10_000;

export function createSseProtocol(
  runtime: UpstreamRuntime,
  config: HttpUpstreamConfig,
  { isSessionActive }: ProcessShare,
  link: HttpLink,
): Protocol {
  const { clock, log } = runtime;
  const { availability } = link;
  const { name, timeoutMs } = config;
  const entries = new Map<string, Entry>();
  const descriptions = createDescriptions(config, availability);
  let cancelSweep: (() => void) | undefined;
  const onStrayAnswer = createWarnThrottle(clock, () =>
    log.warn(`The MCP server ${name} sent an answer that no request asked for; it is dropped`, {
      server: name,
    }),
  );
  const onNoMessage = createWarnThrottle(clock, () =>
    log.warn(`The MCP server ${name} sends events that are no messages of MCP; they are dropped`, {
      server: name,
    }),
  );
  const listeners = createServerListeners(runtime, {
    open: openStream,
    extend(consumer) {
      useEntry(consumer.caller, ({ rpc }) => subscribe(rpc, consumer)).catch(() => {});
      return false;
    },
    describe: descriptions.find,
  });

  const openOnce = (caller: UpstreamCaller, onUnauthorized = () => {}): Promise<SseChannel> =>
    openSseChannel(clock, config, link, {
      caller,
      onNotification: (message) => listeners.notify(caller, message),
      onStrayAnswer,
      onNoMessage,
      onUnauthorized,
    });

  async function open(caller: UpstreamCaller, onUnauthorized?: () => void): Promise<SseChannel> {
    try {
      const channel = await link.connection.openByToken(caller, () =>
        openOnce(caller, onUnauthorized),
      );
      descriptions.note(caller, channel.description);
      availability.noteUp();
      return channel;
    } catch (error) {
      availability.noteFailedHandshake(error);
      throw error;
    }
  }

  function createEntry(caller: UpstreamCaller): Entry {
    const sharer = nameSharer(caller);
    if (entries.size >= MAX_CHANNELS)
      throw new UpstreamError('unavailable', 'too many connections to it are open');
    const entry: Entry = {
      opening: open(caller, () => {
        // Without the user's connection there is no other token, and others may share the channel.
        if (config.auth.type !== 'oauth') return;
        entry.isLeft = true;
        forget();
        closeIfLeft(entry);
      }),
      sessionId: caller.sessionId,
      usedAt: clock.monotonic(),
      askedAt: clock.monotonic(),
      users: 0,
      isLeft: false,
      logLevel: undefined,
    };
    entries.set(sharer, entry);
    function forget() {
      if (entries.get(sharer) === entry) entries.delete(sharer);
    }
    entry.opening.then(({ ended }) => ended).then(forget, forget);
    cancelSweep ??= clock.after(SWEEP_MS, sweep);
    return entry;
  }

  function sweep() {
    const now = clock.monotonic();
    for (const entry of entries.values()) {
      const { opening, sessionId, usedAt, askedAt, users } = entry;
      if (users > 0) continue;
      if (sessionId !== undefined) {
        if (now - Math.max(usedAt, askedAt) >= ASK_AFTER_MS) void endAfterSession(entry, sessionId);
      } else if (now - usedAt >= SHARED_IDLE_MS) void closeChannel(opening);
    }
    cancelSweep = entries.size > 0 ? clock.after(SWEEP_MS, sweep) : undefined;
  }

  /** The session may have been ended on another replica, or silently. */
  async function endAfterSession(entry: Entry, sessionId: string) {
    entry.askedAt = clock.monotonic();
    const isActive = await isSessionActive(sessionId);
    if (!isActive && entry.users === 0) await closeChannel(entry.opening);
  }

  /** The channel stays open until the work is done. */
  async function useEntry<Result>(
    caller: UpstreamCaller,
    work: (channel: SseChannel, entry: Entry) => Promise<Result>,
  ): Promise<Result> {
    const entry = entries.get(nameSharer(caller)) ?? createEntry(caller);
    entry.users += 1;
    try {
      return await work(await entry.opening.catch(throwAsUnsent), entry);
    } finally {
      entry.users -= 1;
      entry.usedAt = clock.monotonic();
      closeIfLeft(entry);
    }
  }

  async function openStream(consumer: StreamConsumer, signal: AbortSignal, onOpen: () => void) {
    if (availability.state.isUp === false) throw availability.createDownError();
    return useEntry(consumer.caller, async ({ rpc, ended }) => {
      if (signal.aborted) return 'never';
      onOpen();
      await subscribe(rpc, consumer);
      // The signal outlives this attempt.
      const over = new AbortController();
      const aborted = new Promise<void>((resolve) => {
        if (signal.aborted) resolve();
        else signal.addEventListener('abort', () => resolve(), { signal: over.signal });
      });
      await Promise.race([ended, aborted]).finally(() => over.abort());
      return 'again';
    });
  }

  async function subscribe(rpc: SseChannel['rpc'], { uris }: StreamConsumer) {
    for (const uri of uris) await rpc.ask('resources/subscribe', { uri }, timeoutMs);
  }

  return {
    era: 'session',
    async describe(caller) {
      const known = descriptions.findCurrent(caller);
      if (known !== undefined) return known;
      const told = await useEntry(caller, async ({ description }) => description);
      descriptions.note(caller, told);
      return told;
    },
    peekDescription: descriptions.find,
    request: (caller, request) =>
      useEntry(caller, async ({ rpc }, entry) => {
        const { logLevel: level } = request;
        if (level !== undefined && level !== entry.logLevel) {
          entry.logLevel = level;
          // A server without logging refuses this request, which does no harm.
          await rpc.ask('logging/setLevel', { level }, SET_LEVEL_MS).catch(() => {});
        }
        return rpc.call(caller, request, (token) => toSessionParams(request, token));
      }),
    listen: listeners.listen,
    async probe() {
      const channel = await open(GATEWAY_CALLER);
      channel.close();
    },
    async isTokenRefused({ user, connectionId }) {
      try {
        (await openOnce({ ...GATEWAY_CALLER, user, connectionId })).close();
        return false;
      } catch (error) {
        if (isUnauthorizedError(error)) return true;
        throw error;
      }
    },
    async endSession(caller) {
      const entry = entries.get(nameSharer(caller));
      if (entry !== undefined) await closeChannel(entry.opening);
    },
    async close() {
      listeners.close();
      cancelSweep?.();
      await Promise.all([...entries.values()].map(({ opening }) => closeChannel(opening)));
    },
  };
}

const closeIfLeft = ({ isLeft, users, opening }: Entry) => {
  if (isLeft && users === 0) void closeChannel(opening);
};

const closeChannel = (opening: Promise<SseChannel>) =>
  opening.then(
    (channel) => channel.close(),
    () => {},
  );

// MCP 2024-11-05 "HTTP with SSE": one stream carries all messages from the server; messages to it are posted to the address named
// by the first event of the stream.

type SseChannel = Awaited<ReturnType<typeof openSseChannel>>;

/** The listener for all messages that are not answers. */
interface SseListener {
  readonly caller: UpstreamCaller;
  onNotification(message: ServerNotification): void;
  onStrayAnswer(): void;
  /** Called for an event that is not a message. Its call is unknown, so it ends no call. */
  onNoMessage(): void;
  /** Called when a message was answered with 401, by the server or by a service behind it. */
  onUnauthorized(): void;
}

const HANDSHAKE_MS = 15_000;

/** @throws UpstreamError */
async function openSseChannel(
  clock: Clock,
  { url, timeoutMs }: HttpUpstreamConfig,
  { connection, openCookies }: HttpLink,
  listener: SseListener,
) {
  const { caller } = listener;
  const session = { headers: [], cookies: openCookies() };
  const handshakeMs = Math.min(timeoutMs, HANDSHAKE_MS);
  let postPath: string | undefined;
  let isOver = false;
  let isInitialized = false;
  let stopStream = () => {};
  let tellEnd = () => {};
  const ended = new Promise<void>((resolve) => {
    tellEnd = resolve;
  });

  const rpc = createRpcConnection(clock, timeoutMs, true, {
    write(message) {
      if (postPath === undefined) return false;
      // Throws to the sender if JSON cannot represent the value.
      const text = new RawJson(writeExactJson(message));
      connection.send(caller, text, session, postPath).then(
        (posted) => handlePosted(message, posted),
        (cause: unknown) =>
          endFor(
            message,
            cause instanceof UpstreamError
              ? cause
              : // Credentials were not available.
                new UpstreamError('unavailable', 'nothing can be sent to it', { cause }),
          ),
      );
      return true;
    },
    onNotification: listener.onNotification,
    onStrayAnswer: listener.onStrayAnswer,
  });

  function take(value: unknown) {
    const { isMessage, count } = rpc.receiveValue(value);
    if (!isMessage) listener.onNoMessage();
    return count;
  }

  /** The stream may not have begun yet. */
  function stop() {
    isOver = true;
    stopStream();
  }

  function end(error: UpstreamError) {
    stop();
    rpc.fail(error);
    tellEnd();
  }

  /** Called when the message was not accepted, and no other will be. Earlier requests may be carried out. */
  function endFor(message: JsonObject, error: UpstreamError) {
    refuse(message, error);
    end(error);
  }

  /** Fails a request. The gateway's responses are skipped, since they carry ids of the server's requests. */
  function refuse({ id, method }: JsonObject, error: UpstreamError) {
    if (method !== undefined) rpc.refuse(id, error);
  }

  /** A server that does not accept a message will not answer it either. */
  function handlePosted(message: JsonObject, posted: ExchangeEnd) {
    if (posted.kind === 'failed') endFor(message, posted.error);
    if (posted.kind !== 'refused') return;
    const { status } = posted;
    // The session is lost, or the server itself refuses the token, since `initialize` does not reach any service behind the server.
    if (status === 404 || (status === 401 && !isInitialized)) {
      endFor(message, toRefusal(posted));
      return;
    }
    if (status === 401) listener.onUnauthorized();
    refuse(message, toRefusal(posted));
  }

  await new Promise<void>((resolve, reject) => {
    const cancelTimer = clock.after(handshakeMs, () => {
      stop();
      reject(new UpstreamError('timeout', 'it did not begin its stream'));
    });
    function settle(error: UpstreamError | undefined) {
      cancelTimer();
      if (error === undefined) resolve();
      else {
        end(error);
        reject(error);
      }
    }
    const reader: ExchangeListener = {
      caller,
      cookies: session.cookies,
      onNamedEvent(name, data) {
        if (name !== 'endpoint' || postPath !== undefined) return;
        postPath = findPath(data, url);
        settle(postPath === undefined ? createInvalidError(FOREIGN_ENDPOINT) : undefined);
      },
      onMessage: take,
      onNoJson: () => take(undefined),
      onEnd(how) {
        if (how.kind === 'failed') settle(how.error);
        else
          settle(
            how.kind === 'refused'
              ? toRefusal(how)
              : new UpstreamError('unavailable', 'it ended its stream'),
          );
      },
    };
    const opening = connection.stream(reader, session.headers);
    opening.then((started) => {
      stopStream = started;
      if (isOver) started();
    }, reject);
  });

  try {
    const params = toInitializeParams(caller.capabilities);
    const description = readInitializeResult(await rpc.ask('initialize', params, handshakeMs));
    if (description === undefined)
      throw new UpstreamError('unavailable', 'it speaks no version of MCP that is known here');
    rpc.notify('notifications/initialized', {});
    isInitialized = true;
    return {
      rpc,
      description,
      /** Resolves when the stream has ended. */
      ended,
      close: () => end(new UpstreamError('unavailable', 'it is no longer served')),
    };
  } catch (error) {
    stop();
    throw error;
  }
}

const FOREIGN_ENDPOINT = 'it names an address at another origin for messages to it';

/** A different origin could be any host, and must not receive the credentials. */
function findPath(data: string, url: string) {
  if (!URL.canParse(data, url)) return undefined;
  const { origin, pathname, search } = new URL(data, url);
  return origin === new URL(url).origin ? pathname + search : undefined;
}
