// §18.3: a server of the session era asks a client of the stateless era. The call ends for the client, and continues on the
// replica that began it; the client's answer may reach a different one.
import { randomUUID } from 'node:crypto';
import type { RequestClient } from '../../../mcp/upstream/server-request.ts';
import { UpstreamError, type UpstreamRuntime } from '../../../mcp/upstream/upstream.ts';
import type { Clock } from '../../../platform/clock.ts';
import { writeExactJson } from '../../../platform/exact-json.ts';
import { isObject, type JsonObject } from '../../../platform/json.ts';
import type { Log } from '../../../platform/log.ts';
import { readExact, toRawMembers } from '../../../platform/noted-json.ts';
import { buildSuspendedCallChannelName } from '../../../store/keys.ts';
import { createReplicas, type Replicas } from '../../../store/replicas/replicas.ts';
import {
  type CallAtServer,
  type CallOwner,
  createOutcomeRecords,
  type NextOutcome,
  OpenCall,
  type OutcomeRecords,
  type Waiter,
} from './outcome-records.ts';

export type SuspendedCalls = ReturnType<typeof createSuspendedCalls>;

export interface NewCall extends CallAtServer {
  /** Kept while the call waits. */
  readonly params: JsonObject;
  /** The user (`nameOwner`); undefined without authentication. */
  readonly user: string | undefined;
  readonly server: string;
}

const ENDED: NextOutcome = {
  kind: 'failed',
  failure: 'aborted',
  message: 'the replica that made the call was stopped',
};

export function createSuspendedCalls(runtime: UpstreamRuntime) {
  const { config, clock, log } = runtime;
  const channel = buildSuspendedCallChannelName(config.mcp.sessions.keyPrefix);
  const replicas = createReplicas(runtime, channel, isSuspendedCallMessage);
  const records = createOutcomeRecords(runtime);
  const table = createCallTable();
  const waitElsewhere = createWaitElsewhere(clock, records, replicas);
  serveOwnCalls(log, table, records, replicas);

  function start(call: NewCall, id: string, waiter: Waiter): OpenCall {
    const { user, server, params } = call;
    const openCall = new OpenCall(clock, call.capabilities, waiter, {
      suspend() {
        if (table.has(id)) return table.hasRoom(user);
        const bytes = Buffer.byteLength(writeExactJson(params));
        return table.add({ id, user, server, bytes, openCall });
      },
      end(untold) {
        table.remove(id);
        if (untold !== undefined) void records.put({ id, user }, untold);
      },
    });
    openCall.start(call.send);
    return openCall;
  }

  return {
    /** Resolves to the first outcome of the call. */
    begin(call: NewCall, listener: CallListener) {
      const id = randomUUID();
      const outcome = waitHere(listener, (waiter) => start(call, id, waiter));
      return { id, replica: replicas.ownName, outcome };
    },
    /** Resolves to the next outcome; undefined if the call has ended, or its replica has stopped. */
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
    /** Ends all waiting calls; their clients have to call again. */
    async close() {
      const ended: readonly CallOwner[] = table.list();
      for (const { openCall } of table.list()) openCall.cancel('The gateway is stopping.');
      await Promise.all(ended.map((owner) => records.put(owner, ENDED)));
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
    function leave() {
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
  /** Undefined if the client left it out. */
  readonly answer: unknown;
}

export type CallListener = Pick<RequestClient, 'signal' | 'progress' | 'log'>;

/** Heartbeat interval: checks with the other replica whether the call is alive, since messages can be lost, and replicas end. */
const ASK_EVERY_MS = 2000;
const MAX_UNANSWERED = 3;

function createWaitElsewhere(
  clock: Clock,
  records: OutcomeRecords,
  replicas: Replicas<SuspendedCallMessage>,
) {
  /** Keyed by ticket. */
  const waits = new Map<string, (message: SuspendedCallMessage) => void>();

  replicas.listen((message) => waits.get(message.ticket)?.(message));

  /**
   * Passes a reply on, and resolves to the next outcome of the call; undefined if no replica knows the call any more.
   *
   * @throws StoreUnavailable; UpstreamError `aborted` if the client hangs up.
   */
  return async function waitElsewhere(
    reply: ClientReply,
    listener: CallListener,
  ): Promise<NextOutcome | undefined> {
    const settled = await records.take(reply);
    // A question that was delivered twice, and has been answered by now, does not count.
    const isAnswered =
      settled?.kind === 'question' && settled.key === reply.key && reply.answer !== undefined;
    if (settled !== undefined && !isAnswered) return settled;
    await waitForSettlement(reply, listener);
    return records.take(reply);
  };

  /** Resolves when the call has an outcome, and also when the other replica has stopped. */
  function waitForSettlement(reply: ClientReply, listener: CallListener): Promise<void> {
    const ticket = randomUUID();
    const { id: call, user, server, replica, key } = reply;
    const { answer } = toRawMembers({ answer: reply.answer });
    const from = replicas.ownName;
    const about = { about: 'resume', ticket, from, call, user, server } as const;
    const send = (message: SuspendedCallMessage) => replicas.send(message, replica);

    return new Promise((resolve, reject) => {
      let stopAsking = () => {};
      let unanswered = 0;
      /** True once the reply has arrived, so that it is not sent again. */
      let hasArrived = false;

      function receive(message: SuspendedCallMessage) {
        if (message.about === 'going_on') {
          unanswered = 0;
          hasArrived = true;
        } else if (message.about === 'settled') end(resolve);
        else if (message.about === 'progress') listener.progress(readNotification(message.params));
        else if (message.about === 'log') listener.log(readNotification(message.params));
      }

      function askWhetherItGoesOn() {
        if (unanswered === MAX_UNANSWERED) {
          end(resolve);
          return;
        }
        unanswered += 1;
        // If the store fails now, it will fail again at the next heartbeat, or when the outcome is read, which reports the failure.
        send(hasArrived ? about : { ...about, key, answer }).catch(() => {});
        stopAsking = clock.after(ASK_EVERY_MS, askWhetherItGoesOn);
      }

      function leave() {
        send({ about: 'left', ticket, call }).catch(() => {});
        end(() => reject(new UpstreamError('aborted', 'the client hung up')));
      }

      function end(then: () => void) {
        waits.delete(ticket);
        stopAsking();
        listener.signal.removeEventListener('abort', leave);
        then();
      }

      waits.set(ticket, receive);
      listener.signal.addEventListener('abort', leave);
      // If the client hung up while the store was read, nothing more is sent to it.
      if (listener.signal.aborted) leave();
      else askWhetherItGoesOn();
    });
  }
}

// The side of the replica that began a call: it answers the server, and reports to the replica on which the client's retry is
// waiting.

/**
 * Maximum number of server notifications on their way to another replica. More are dropped, as for a client that reads too slowly.
 */
const MAX_UNDER_WAY = 16;

/** Listens to the other replicas. */
function serveOwnCalls(
  log: Log,
  table: ReturnType<typeof createCallTable>,
  records: OutcomeRecords,
  replicas: Replicas<SuspendedCallMessage>,
) {
  /** Retries that wait on other replicas, keyed by ticket. */
  const waiters = new Map<string, { readonly waiter: Waiter; readonly openCall: OpenCall }>();

  // The waiting replica asks again if a message is lost.
  const send = (message: SuspendedCallMessage, to: string) =>
    replicas.send(message, to).catch((cause: unknown) => {
      log.debug('A message to the replica where a client waits could not be sent.', { cause });
    });

  replicas.listen((message) => {
    if (message.about === 'resume') resume(message);
    if (message.about === 'left') leave(message.ticket);
  });

  function resume({
    ticket,
    from,
    call: id,
    user,
    server,
    key,
    answer,
  }: Extract<SuspendedCallMessage, { about: 'resume' }>) {
    const openCall = table.find({ id, user, server });
    if (waiters.has(ticket)) {
      void send({ about: 'going_on', ticket }, from);
    } else if (openCall === undefined || key === undefined) {
      void send({ about: 'settled', ticket }, from);
    } else {
      void send({ about: 'going_on', ticket }, from);
      const waiter = createWaiter({ id, user }, ticket, from);
      waiters.set(ticket, { waiter, openCall });
      openCall.answer(key, answer);
      openCall.wait(waiter);
    }
  }

  function createWaiter(owner: CallOwner, ticket: string, from: string): Waiter {
    let underWay = 0;

    function pass(about: 'progress' | 'log', params: JsonObject) {
      if (underWay >= MAX_UNDER_WAY) return;
      underWay += 1;
      void send({ about, ticket, params }, from).finally(() => {
        underWay -= 1;
      });
    }

    async function settle(outcome: NextOutcome) {
      waiters.delete(ticket);
      const isAborted = outcome.kind === 'failed' && outcome.failure === 'aborted';
      if (!isAborted) await records.put(owner, outcome);
      await send({ about: 'settled', ticket }, from);
    }

    return {
      progress: (params) => pass('progress', params),
      log: (params) => pass('log', params),
      settle: (outcome) => void settle(outcome),
    };
  }

  function leave(ticket: string) {
    const { waiter, openCall } = waiters.get(ticket) ?? {};
    if (openCall?.isWaitedFor(waiter)) openCall.cancel('The client hung up.');
  }
}

/** Params that another replica passed on. */
const readNotification = (params: unknown) => (isObject(params) ? readExact(params) : {});

// This replica's calls that are waiting, or have waited, for an answer from their client.

interface SuspendedCall extends CallOwner {
  readonly server: string;
  /** Size of its params; its open questions are counted separately. */
  readonly bytes: number;
  readonly openCall: OpenCall;
}

/** The bytes are taken from the budget for the user's other calls. */
const MAX_PER_USER = { calls: 16, bytes: 8 * 1024 * 1024 };
const MAX_IN_ALL = { calls: 512, bytes: 64 * 1024 * 1024 };

function createCallTable() {
  const calls = new Map<string, SuspendedCall>();

  function hasRoom(user: string | undefined) {
    const all = [...calls.values()];
    // Without authentication there are no limits per user.
    const ofUser = user === undefined ? [] : all.filter((call) => call.user === user);
    return fits(all, MAX_IN_ALL) && fits(ofUser, MAX_PER_USER);
  }

  return {
    has: (id: string) => calls.has(id),
    /** False if the user or the process has too many, or too much memory is used for them. */
    add(call: SuspendedCall) {
      calls.set(call.id, call);
      if (hasRoom(call.user)) return true;
      calls.delete(call.id);
      return false;
    },
    /** False if the calls of this user, or of all users, use too much memory. */
    hasRoom,
    /** Undefined if the call belongs to another user, or to another server. */
    find({ id, user, server }: Pick<SuspendedCall, 'id' | 'user' | 'server'>) {
      const call = calls.get(id);
      return call?.user === user && call?.server === server ? call?.openCall : undefined;
    },
    remove: (id: string) => void calls.delete(id),
    list: () => [...calls.values()],
  };
}

const fits = (calls: readonly SuspendedCall[], max: typeof MAX_IN_ALL) =>
  calls.length <= max.calls && calls.reduce((sum, call) => sum + countBytes(call), 0) <= max.bytes;

const countBytes = ({ bytes, openCall }: SuspendedCall) => bytes + openCall.countQuestionBytes();

// Messages between replicas about calls that are waiting for answers (store/replicas).

/** `ticket` identifies a client's request that is waiting on the replica `from`. */
type SuspendedCallMessage =
  /** To the replica of the call: the client is back. Repeated while the client waits, without the answer once that has arrived. */
  | {
      readonly about: 'resume';
      readonly ticket: string;
      readonly from: string;
      readonly call: string;
      /** The call's user, in the form of `nameOwner`. */
      readonly user?: string | undefined;
      readonly server: string;
      readonly key?: string;
      readonly answer?: unknown;
    }
  /** To the replica of the call: the client hung up. */
  | { readonly about: 'left'; readonly ticket: string; readonly call: string }
  /** To the waiting replica: the call is still running. */
  | { readonly about: 'going_on'; readonly ticket: string }
  /** To the waiting replica: nothing more comes from the call; its outcome, if any, is in the store. */
  | { readonly about: 'settled'; readonly ticket: string }
  /** To the waiting replica: params of a notification from the server. */
  | { readonly about: 'progress' | 'log'; readonly ticket: string; readonly params: unknown };

const TOPICS: ReadonlySet<unknown> = new Set([
  'resume',
  'left',
  'going_on',
  'settled',
  'progress',
  'log',
]);

const isSuspendedCallMessage = (value: unknown): value is SuspendedCallMessage =>
  isObject(value) && TOPICS.has(value.about) && typeof value.ticket === 'string';
