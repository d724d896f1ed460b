// MCP "Streamable HTTP": long-lived streams of notifications: GET /mcp and subscriptions/listen.

import { fail } from '../../errors/gateway-error.ts';
import type { UserContext } from '../../http/endpoint/message.ts';
import { SharedTimer, type Wait } from '../../platform/clock.ts';
import { writeExactJson } from '../../platform/exact-json.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { nameOwner } from '../../store/keys.ts';
import type { Callers } from '../calls/call.ts';
import type { OutgoingMessage } from '../protocol/json-rpc.ts';
import { type EventChannel, PlainChannel } from './event-queue.ts';
import type { StreamResponse } from './response-stream.ts';

export interface NotificationStream {
  readonly response: StreamResponse;
  /** Dropped while the client reads too slowly. */
  send(message: OutgoingMessage): void;
  /** For messages of low priority: dropped early, so that they never displace others. */
  sendIfRoom(message: OutgoingMessage): void;
  end(): void;
}

interface NewNotificationStream {
  /** Undefined without authentication. */
  readonly user: UserContext | undefined;
  /**
   * Begins to send; the returned function is called once when the stream ends. An error also ends the stream. An error of the
   * returned function is logged.
   */
  listen(stream: NotificationStream): () => void;
  /** Sent last, unless the client disconnects. */
  readonly lastMessage?: object;
  /** Opens a resumable channel; absent for one that ends with its connection. */
  openChannel?(stream: Pick<NotificationStream, 'end'>): EventChannel;
}

/** Clients reconnect; token and session are verified again then. */
const LIFETIME_MS = 300_000;

/** Enough for many clients of one user. */
const MAX_PER_USER = 50;
/** Based on memory use (npm run bench -- memory --only streams). */
const MAX_OPEN = 10_000;
/** The share of connections for streams: the rest is for calls. */
const CONNECTIONS_PART = 0.9;

export type NotificationStreams = ReturnType<typeof createNotificationStreams>;

export function createNotificationStreams(
  { config, clock, log }: Runtime,
  endedGrants: Callers['endedGrants'],
) {
  const open = new Set<OpenStream>();
  // 0 means no limit.
  const { maxConnections } = config.http;
  const places = Math.floor((maxConnections || Number.POSITIVE_INFINITY) * CONNECTIONS_PART);
  const counts = createUserCounts(MAX_PER_USER, Math.min(MAX_OPEN, places));
  const lifetimes = new SharedTimer<OpenStream>(clock, LIFETIME_MS, (stream) => stream.end());
  let isClosed = false;

  endedGrants?.listen((grantId) => {
    // Without an error, unlike calls: a client that opens the stream again gets the 401.
    for (const stream of open) if (stream.grantId === grantId) stream.end();
  });

  /** A class, and only the names of the user: thousands stay open for minutes. */
  class OpenStream implements NotificationStream {
    readonly userName: string | undefined;
    readonly grantId: string | undefined;
    private readonly lastMessage: object | undefined;
    private readonly channel: EventChannel;
    private readonly lifetime: Wait<OpenStream>;
    /** Undefined if the login outlives the stream. */
    private readonly stopAging: (() => void) | undefined;
    private stopListening: (() => void) | undefined = undefined;

    constructor(
      user: UserContext | undefined,
      lastMessage: object | undefined,
      openChannel: (stream: Pick<NotificationStream, 'end'>) => EventChannel,
    ) {
      this.userName = user && nameOwner(user);
      this.grantId = user?.grant?.id;
      this.lastMessage = lastMessage;
      this.channel = openChannel(this);
      this.lifetime = lifetimes.add(this);
      const { endsAt = Number.POSITIVE_INFINITY } = user?.grant ?? {};
      const leftMs = endsAt - clock.now();
      this.stopAging = leftMs < LIFETIME_MS ? clock.after(leftMs, () => this.end()) : undefined;
    }

    get response(): StreamResponse {
      return { kind: 'stream', events: this.channel.items };
    }

    /** @throws the error of `listen`. */
    begin(listen: NewNotificationStream['listen']): void {
      try {
        this.stopListening = listen(this);
        this.channel.begin();
      } catch (error) {
        this.end();
        throw error;
      }
    }

    send(message: OutgoingMessage): void {
      if (!this.channel.isFull()) this.channel.send(toJson(message), true);
    }

    sendIfRoom(message: OutgoingMessage): void {
      const { channel } = this;
      if (!channel.hasRoomToSpare(0)) return;
      const json = toJson(message);
      if (channel.hasRoomToSpare(json.length)) channel.send(json, true);
    }

    disconnect(): void {
      this.channel.disconnect();
    }

    end(): void {
      const { channel, lastMessage } = this;
      if (!open.delete(this)) return;
      counts.count(this.userName, -1);
      lifetimes.remove(this.lifetime);
      this.stopAging?.();
      try {
        this.stopListening?.();
      } catch (cause) {
        log.error('A stream has ended, but its subscriptions could not be stopped.', { cause });
      }
      if (lastMessage !== undefined) channel.send(JSON.stringify(lastMessage), false);
      channel.close();
    }
  }

  return {
    /** @throws GatewayError `too_many_streams` for its user, or for the process; `token_revoked`; the error of `listen`. */
    open({
      user,
      listen,
      lastMessage,
      openChannel = openPlainChannel,
    }: NewNotificationStream): NotificationStream {
      if (user?.grant !== undefined && endedGrants?.hasEnded(user.grant.id)) fail('token_revoked');
      if (!counts.hasRoom(user && nameOwner(user), 1)) fail('too_many_streams');
      const stream = new OpenStream(user, lastMessage, openChannel);
      open.add(stream);
      counts.count(stream.userName, 1);
      // The process is stopping: the client reconnects to another replica.
      if (isClosed) queueMicrotask(() => stream.end());
      stream.begin(listen);
      return stream;
    },
    /** Closes all connections: a shutdown must not wait for them. */
    disconnect(): void {
      isClosed = true;
      for (const stream of open) stream.disconnect();
    },
    /** Ends all streams, resumable ones included. */
    close(): void {
      for (const stream of open) stream.end();
    },
  };
}

const toJson = (message: OutgoingMessage) => writeExactJson({ jsonrpc: '2.0', ...message });

const openPlainChannel = (stream: Pick<NotificationStream, 'end'>): EventChannel =>
  new PlainChannel(() => stream.end());

/** Counts per user and in total; only in total without a user. */
export function createUserCounts(maxOfUser: number, maxOfAll: number) {
  const byUser = new Map<string, number>();
  let all = 0;
  return {
    hasRoom: (user: string | undefined, wanted: number): boolean =>
      all + wanted <= maxOfAll &&
      (user === undefined || (byUser.get(user) ?? 0) + wanted <= maxOfUser),
    count(user: string | undefined, change: number): void {
      all += change;
      if (user === undefined) return;
      const left = (byUser.get(user) ?? 0) + change;
      if (left === 0) byUser.delete(user);
      else byUser.set(user, left);
    },
  };
}
