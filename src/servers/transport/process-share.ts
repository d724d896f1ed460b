// §18.4: the state shared by all upstream servers in this process, whatever their transport.

import { UpstreamError, type UpstreamRuntime } from '../../mcp/upstream/upstream.ts';
import { type Clock, computePauseMs } from '../../platform/clock.ts';
import {
  type CountedTransfer,
  createMemoryBudget,
  createTransfers,
  createUserBudgets,
  type MemoryBudget,
} from '../../platform/memory/user-budgets.ts';
import { MessagePace } from './message-pace.ts';

/** §18.4: exponential backoff of attempts to reach a server, or to publish its changes. */
export const BACK_OFF = { firstMs: 1000, longestMs: 30_000 };

/** Milliseconds after this many consecutive failures. */
export const pauseAfter = (failures: number): number => computePauseMs(BACK_OFF, failures);

export type ProcessShare = ReturnType<typeof openProcessShare>;

/** `serves` is false for a command, which is not a replica. */
export function openProcessShare({ config, clock, store }: UpstreamRuntime, serves: boolean) {
  return {
    answerMemory: createAnswerMemory(clock, config.upstreams.maxBytes),
    messagePace: new MessagePace(clock),
    heldStreams: createHeldStreams(clock),
    /** True if other processes use the same store. */
    hasReplicas: serves && store.isShared,
    /** True if a client's session is alive: any replica may have ended it. True while the store is unavailable. Never rejects. */
    async isSessionActive(sessionId: string) {
      try {
        const access = { sessionId, owner: undefined, slideSeconds: undefined };
        const { session } = await store.admitRequest([], access);
        return 'failure' in session || session.record !== undefined;
      } catch {
        return true;
      }
    },
  };
}

// §18.3: streams that are held open only so that servers can ask on them: limits their number, and keeps each for a while after
// the last call, so that only the first of several calls has to wait for its stream.

export interface HeldStream {
  /** In the form of `nameOwner`; undefined without authentication. */
  readonly user: string | undefined;
  /** Monotonic milliseconds. */
  usedAt: number;
  /** True while a call needs it. */
  isBusy(): boolean;
  /** Removes the stream: it is no longer needed, or has to make room for another one. */
  close(): void;
}

/** Each stream is a connection. One user's streams must leave room for those of others. */
const MAX_PER_USER = 64;
const MAX_IN_ALL = 1024;
const IDLE_MS = 60_000;
const SWEEP_MS = 15_000;

/** The streams for all servers of the process. */
export function createHeldStreams(clock: Clock) {
  const held = new Set<HeldStream>();
  let isSweeping = false;

  function sweepLater() {
    if (isSweeping || held.size === 0) return;
    isSweeping = true;
    clock.after(SWEEP_MS, () => {
      isSweeping = false;
      const now = clock.monotonic();
      for (const stream of held) {
        if (stream.isBusy()) stream.usedAt = now;
        else if (now - stream.usedAt >= IDLE_MS) stream.close();
      }
      sweepLater();
    });
  }

  /** Closes the stream that has been unused the longest, if there are too many. */
  function makeRoom(streams: readonly HeldStream[], max: number) {
    if (streams.length < max) return true;
    const [idlest] = streams
      .filter((stream) => !stream.isBusy())
      .sort((one, other) => one.usedAt - other.usedAt);
    idlest?.close();
    return idlest !== undefined;
  }

  return {
    /** False if there is no room: calls in flight need all streams of that user, or of the process. */
    add(stream: HeldStream) {
      const { user } = stream;
      // Without authentication there are no limits per user.
      const ofUser = user === undefined ? [] : [...held].filter((other) => other.user === user);
      if (!makeRoom(ofUser, MAX_PER_USER) || !makeRoom([...held], MAX_IN_ALL)) return false;
      held.add(stream);
      sweepLater();
      return true;
    },
    remove: (stream: HeldStream) => void held.delete(stream),
  };
}

// §18.4: memory of answers while they arrive: a budget for each user and one for all users together; for the gateway's own
// requests, a budget for each server and one for all servers. If a budget is full, the slowest answer is dropped.

/**
 * Owner of an answer: a user, who is unknown without authentication, or the gateway itself, which sent a request to this server.
 */
type AnswerOwner = { readonly user: string | undefined } | { readonly server: string };

const MEBIBYTE = 1_048_576;
const USER_BYTES = 16 * MEBIBYTE;
const ALL_BYTES = 64 * MEBIBYTE;
/** For lists, and for streams that the gateway listens to. Answers for users and from other servers do not use this budget. */
const SERVER_BYTES = 16 * MEBIBYTE;
/** Nearly all answers arrive in one piece: counting each of them would cost more than it is worth. */
export const UNCOUNTED_BYTES = 16_384;

/** A single answer of `maxBytes` always fits. */
export function createAnswerMemory(clock: Clock, maxBytes: number) {
  const all = createMemoryBudget(Math.max(ALL_BYTES, maxBytes));
  const users = createUserBudgets(Math.max(USER_BYTES, maxBytes));
  const allServers = createMemoryBudget(Math.max(ALL_BYTES, maxBytes));
  const servers = createUserBudgets(Math.max(SERVER_BYTES, maxBytes));
  const transfers = createTransfers(clock, false);

  /** The smallest budget first. */
  function findBudgets(owner: AnswerOwner): readonly MemoryBudget[] {
    if ('server' in owner) return [servers.find(owner.server), allServers];
    return owner.user === undefined ? [all] : [users.find(owner.user), all];
  }

  return {
    /** Counts one answer, or one stream of answers. `onDrop` is called at most once, when it has to end. */
    open(owner: AnswerOwner, onDrop: (error: UpstreamError) => void) {
      let counted = 0;
      let transfer: CountedTransfer | undefined;
      let isOver = false;

      function release() {
        transfer?.end();
        transfer = undefined;
        counted = 0;
      }

      return {
        /** Bytes that were received, and those that are currently kept because the rest has not arrived yet. */
        note(received: number, kept: number) {
          if (isOver) return;
          if (kept < UNCOUNTED_BYTES) {
            release();
            return;
          }
          const change = kept - counted;
          counted = kept;
          transfer ??= transfers.start(findBudgets(owner), {
            onDrop: () => onDrop(new UpstreamError('overloaded', TOO_MANY)),
            onEnd() {
              if ('server' in owner) servers.forgetIfEmpty(owner.server);
              else if (owner.user !== undefined) users.forgetIfEmpty(owner.user);
            },
          });
          transfer.count(received, change);
        },
        end() {
          isOver = true;
          release();
        },
      };
    },
  };
}

export type CountedAnswer = ReturnType<ReturnType<typeof createAnswerMemory>['open']>;

const TOO_MANY =
  'too many large answers were coming in at the same time, and this one came the slowest';
