// §18.4: state that all servers of this process share, whatever their transport.

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

/** Milliseconds after so many failures in a row. */
export const pauseAfter = (failures: number): number => computePauseMs(BACK_OFF, failures);

export type ProcessShare = ReturnType<typeof openProcessShare>;

/** `serves` is false for a command, which is none of several replicas. */
export function openProcessShare({ config, clock, store }: UpstreamRuntime, serves: boolean) {
  return {
    answerMemory: createAnswerMemory(clock, config.upstreams.maxBytes),
    messagePace: new MessagePace(clock),
    heldStreams: createHeldStreams(clock),
    /** Other processes serve with the same store. */
    hasReplicas: serves && store.isShared,
    /** True if a client's session is alive: any replica may have ended it. True while the store does not answer. Never rejects. */
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

// §18.3: streams that are held open only so that servers can ask on them: bounds their number, and keeps each for a while after the
// last call, so that only the first one of several calls waits for its stream.

export interface HeldStream {
  /** As `nameOwner` has it; undefined without authentication. */
  readonly user: string | undefined;
  /** Monotonic milliseconds. */
  usedAt: number;
  /** True while a call needs it. */
  isBusy(): boolean;
  /** It is not needed any more, or makes room for another one; removes it. */
  close(): void;
}

/** Each is a connection. One user's leave room for those of others. */
const MAX_PER_USER = 64;
const MAX_IN_ALL = 1024;
const IDLE_MS = 60_000;
const SWEEP_MS = 15_000;

/** For all servers of the process. */
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

  /** Closes the stream that was not needed for longest, if there are too many. */
  function makeRoom(streams: readonly HeldStream[], max: number) {
    if (streams.length < max) return true;
    const [idlest] = streams
      .filter((stream) => !stream.isBusy())
      .sort((one, other) => one.usedAt - other.usedAt);
    idlest?.close();
    return idlest !== undefined;
  }

  return {
    /** False where there is no room: all of that user's, or of the process, are needed by calls under way. */
    add(stream: HeldStream) {
      const { user } = stream;
      // Without authentication nothing is counted per user.
      const ofUser = user === undefined ? [] : [...held].filter((other) => other.user === user);
      if (!makeRoom(ofUser, MAX_PER_USER) || !makeRoom([...held], MAX_IN_ALL)) return false;
      held.add(stream);
      sweepLater();
      return true;
    },
    remove: (stream: HeldStream) => void held.delete(stream),
  };
}

// §18.4: memory of answers while they arrive: a budget for each user and for all users together; for requests of the gateway itself
// one for each server and for all servers. Where a budget is full, the slowest answer is dropped.

/** Owner of an answer: a user, who is unknown without authentication; or the gateway itself, which asked this server. */
type AnswerOwner = { readonly user: string | undefined } | { readonly server: string };

const MEBIBYTE = 1_048_576;
const USER_BYTES = 16 * MEBIBYTE;
const ALL_BYTES = 64 * MEBIBYTE;
/** For lists, and streams that the gateway listens to. Answers of users and of other servers take none of it. */
const SERVER_BYTES = 16 * MEBIBYTE;
/** Nearly all answers come in one piece: to count each of them would cost more than it bounds. */
export const UNCOUNTED_BYTES = 16_384;

/** One answer of `maxBytes` always has room. */
export function createAnswerMemory(clock: Clock, maxBytes: number) {
  const all = createMemoryBudget(Math.max(ALL_BYTES, maxBytes));
  const users = createUserBudgets(Math.max(USER_BYTES, maxBytes));
  const allServers = createMemoryBudget(Math.max(ALL_BYTES, maxBytes));
  const servers = createUserBudgets(Math.max(SERVER_BYTES, maxBytes));
  const transfers = createTransfers(clock, false);

  /** The smallest first. */
  function findBudgets(owner: AnswerOwner): readonly MemoryBudget[] {
    if ('server' in owner) return [servers.find(owner.server), allServers];
    return owner.user === undefined ? [all] : [users.find(owner.user), all];
  }

  return {
    /** Counts one answer, or one stream of them; `onDrop` is called at most once, when it has to end. */
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
        /** Bytes that were received, and those that are kept now because the rest is still to come. */
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
