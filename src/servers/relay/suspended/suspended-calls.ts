// §18.3: a server of the session era asks a client of the stateless era. The call ends for the client, and goes on at
// the replica that began it; the client's answer may reach another one.
import { randomUUID } from 'node:crypto';
import type { RequestClient } from '../../../mcp/upstream/server-request.ts';
import { UpstreamError, type UpstreamRuntime } from '../../../mcp/upstream/upstream.ts';
import type { Clock } from '../../../platform/clock.ts';
import { writeExactJson } from '../../../platform/exact-json.ts';
import type { JsonObject } from '../../../platform/json.ts';
import { toRawMembers } from '../../../platform/noted-json.ts';
import { buildSuspendedCallChannelName } from '../../../store/keys.ts';
import { createReplicas, type Replicas } from '../../../store/replicas/replicas.ts';
import { type CallAtServer, type OpenCall, startOpenCall, type Waiter } from './open-call.ts';
import {
  type CallOwner,
  createOutcomeRecords,
  type NextOutcome,
  type OutcomeRecords,
} from './outcome-records.ts';
import {
  createCallTable,
  isSuspendedCallMessage,
  putRecord,
  readNotification,
  type SuspendedCallMessage,
  serveOwnCalls,
} from './own-calls.ts';

export type SuspendedCalls = ReturnType<typeof createSuspendedCalls>;

export interface NewCall extends CallAtServer {
  /** Kept while it waits. */
  readonly params: JsonObject;
  /** The user (`nameOwner`); undefined without authentication. */
  readonly user: string | undefined;
  readonly server: string;
}

export interface StartedCall {
  /** Finds it again. */
  readonly id: string;
  readonly replica: string;
  readonly outcome: Promise<NextOutcome>;
}

const ENDED: NextOutcome = {
  kind: 'failed',
  failure: 'aborted',
  message: 'the replica that made the call was stopped',
};

export function createSuspendedCalls(runtime: UpstreamRuntime) {
  const { config, store, getSeal, clock, log, metrics } = runtime;
  const channel = buildSuspendedCallChannelName(config.mcp.sessions.keyPrefix);
  const isMessage = isSuspendedCallMessage;
  const replicas = createReplicas({ store, getSeal, clock, log, metrics }, channel, isMessage);
  const records = createOutcomeRecords(runtime);
  const table = createCallTable();
  const waitElsewhere = createWaitElsewhere(clock, records, replicas);
  serveOwnCalls(log, table, records, replicas);

  function start(call: NewCall, id: string, waiter: Waiter): OpenCall {
    const { user, server, params } = call;
    return startOpenCall(clock, call, waiter, {
      suspend(openCall) {
        if (table.has(id)) return table.hasRoom(user);
        const bytes = Buffer.byteLength(writeExactJson(params));
        return table.add({ id, user, server, bytes, openCall });
      },
      end(untold) {
        table.remove(id);
        if (untold !== undefined) void putRecord(records, log, { id, user }, untold);
      },
    });
  }

  return {
    /** Resolves to what the call comes to first. */
    begin(call: NewCall, listener: CallListener) {
      const id = randomUUID();
      const outcome = waitHere(listener, (waiter) => start(call, id, waiter));
      return { id, replica: replicas.ownName, outcome };
    },
    /** Resolves to what it comes to next; undefined when it is over, or its replica is gone. */
    async resume(reply: ClientReply, listener: CallListener) {
      if (reply.replica !== replicas.ownName) return waitElsewhere(reply, listener);
      const openCall = table.find(reply);
      if (openCall === undefined) return records.take(reply);
      openCall.answer(reply.key, reply.answer);
      return waitHere(listener, (waiter) => {
        openCall.wait(waiter);
        return openCall;
      });
    },
    /** Ends all that wait; their clients are told to call again. */
    async close() {
      const ended: readonly CallOwner[] = table.list();
      for (const { openCall } of table.list()) openCall.cancel('The gateway is stopping.');
      await Promise.all(ended.map((owner) => putRecord(records, log, owner, ENDED)));
      replicas.close();
    },
  };
}

/** A client that hangs up while it waits has cancelled the call. */
function waitHere(
  { signal, progress, log }: CallListener,
  start: (waiter: Waiter) => OpenCall,
): Promise<NextOutcome> {
  return new Promise((resolve) => {
    const waiter: Waiter = {
      progress,
      log,
      settle(outcome) {
        signal.removeEventListener('abort', leave);
        resolve(outcome);
      },
    };
    const openCall = start(waiter);
    function leave(): void {
      if (openCall.isWaitedFor(waiter)) openCall.cancel('The client hung up.');
    }
    signal.addEventListener('abort', leave);
    if (signal.aborted) leave();
  });
}

// The side of the replica where a client's retry waits for a call that another replica began.

/** A client's answer to a question of a call. */
export interface ClientReply extends CallOwner {
  readonly server: string;
  /** The replica that began the call. */
  readonly replica: string;
  readonly key: string;
  /** Undefined where the client left it out. */
  readonly answer: unknown;
}

export type CallListener = Pick<RequestClient, 'signal' | 'progress' | 'log'>;

/**
 * Passes a reply on, and resolves to what the call comes to next; undefined when nobody knows the call any more.
 *
 * @throws StoreUnavailable; UpstreamError `aborted` when the client hangs up.
 */
type WaitElsewhere = (
  reply: ClientReply,
  listener: CallListener,
) => Promise<NextOutcome | undefined>;

/** Milliseconds between two questions to the other replica whether the call goes on: messages can be lost, and replicas end. */
const ASK_EVERY_MS = 2000;
const MAX_UNANSWERED = 3;

interface Wait {
  unanswered: number;
  /** The reply has arrived: it is not sent again. */
  hasArrived: boolean;
  readonly listener: CallListener;
  settle(): void;
}

function createWaitElsewhere(
  clock: Clock,
  records: OutcomeRecords,
  replicas: Replicas<SuspendedCallMessage>,
): WaitElsewhere {
  const waits = new Map<string, Wait>();

  replicas.listen((message) => {
    const wait = waits.get(message.ticket);
    if (wait === undefined) return;
    switch (message.about) {
      case 'going_on':
        wait.unanswered = 0;
        wait.hasArrived = true;
        return;
      case 'settled':
        return wait.settle();
      case 'progress':
        return wait.listener.progress(readNotification(message.params));
      case 'log':
        return wait.listener.log(readNotification(message.params));
    }
  });

  return async function waitElsewhere(reply, listener) {
    const settled = await records.take(reply);
    if (settled !== undefined && !isAnsweredBy(reply, settled)) return settled;
    await waitForSettlement(reply, listener);
    return records.take(reply);
  };

  /** Also resolves when the other replica is gone. */
  function waitForSettlement(reply: ClientReply, listener: CallListener): Promise<void> {
    const ticket = randomUUID();
    const { id: call, user, server, replica, key } = reply;
    const { answer } = toRawMembers({ answer: reply.answer });
    const from = replicas.ownName;
    const about = { about: 'resume', ticket, from, call, user, server } as const;
    const send = (message: SuspendedCallMessage) => replicas.send(message, replica);

    return new Promise((resolve, reject) => {
      let stopAsking = () => {};
      const wait: Wait = { unanswered: 0, hasArrived: false, listener, settle: () => end(resolve) };

      function askWhetherItGoesOn(): void {
        if (wait.unanswered === MAX_UNANSWERED) {
          wait.settle();
          return;
        }
        wait.unanswered += 1;
        // A store that fails now fails again the next time, or at the look for the outcome, which says so.
        send(wait.hasArrived ? about : { ...about, key, answer }).catch(() => {});
        stopAsking = clock.after(ASK_EVERY_MS, askWhetherItGoesOn);
      }

      function leave(): void {
        send({ about: 'left', ticket, call }).catch(() => {});
        end(() => reject(new UpstreamError('aborted', 'the client hung up')));
      }

      function end(then: () => void): void {
        waits.delete(ticket);
        stopAsking();
        listener.signal.removeEventListener('abort', leave);
        then();
      }

      waits.set(ticket, wait);
      listener.signal.addEventListener('abort', leave);
      // Whoever hung up while the store was asked is not told again.
      if (listener.signal.aborted) leave();
      else askWhetherItGoesOn();
    });
  }
}

/** A question that was told twice, and is answered now. */
const isAnsweredBy = ({ key, answer }: ClientReply, outcome: NextOutcome): boolean =>
  outcome.kind === 'question' && outcome.key === key && answer !== undefined;
