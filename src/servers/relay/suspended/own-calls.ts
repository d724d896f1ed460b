// The side of the replica that began a call: it answers the server, and tells where the client's retry waits.

import { isObject, type JsonObject } from '../../../platform/json.ts';
import type { Log } from '../../../platform/log.ts';
import { readExact } from '../../../platform/noted-json.ts';
import type { Replicas } from '../../../store/replicas/replicas.ts';
import type { OpenCall, Waiter } from './open-call.ts';
import type { CallOwner, NextOutcome, OutcomeRecords } from './outcome-records.ts';

type Resume = Extract<SuspendedCallMessage, { about: 'resume' }>;

/** A retry that waits at another replica. */
interface RemoteWaiter {
  readonly waiter: Waiter;
  readonly openCall: OpenCall;
}

/** Server notifications on their way to another replica; more are dropped, as for a client that reads too slowly. */
const MAX_UNDER_WAY = 16;

/** Listens to the other replicas. */
export function serveOwnCalls(
  log: Log,
  table: CallTable,
  records: OutcomeRecords,
  replicas: Replicas<SuspendedCallMessage>,
): void {
  const waiters = new Map<string, RemoteWaiter>();

  // The replica that waits asks again for a message that is lost.
  const send = (message: SuspendedCallMessage, to: string): Promise<void> =>
    replicas.send(message, to).catch((cause: unknown) => {
      log.debug('A message to the replica where a client waits could not be sent.', { cause });
    });

  replicas.listen((message) => {
    if (message.about === 'resume') resume(message);
    if (message.about === 'left') leave(message.ticket);
  });

  function resume({ ticket, from, call: id, user, server, key, answer }: Resume): void {
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

    function pass(about: 'progress' | 'log', params: JsonObject): void {
      if (underWay >= MAX_UNDER_WAY) return;
      underWay += 1;
      void send({ about, ticket, params }, from).finally(() => {
        underWay -= 1;
      });
    }

    async function settle(outcome: NextOutcome): Promise<void> {
      waiters.delete(ticket);
      if (!isAborted(outcome)) await putRecord(records, log, owner, outcome);
      await send({ about: 'settled', ticket }, from);
    }

    return {
      progress: (params) => pass('progress', params),
      log: (params) => pass('log', params),
      settle: (outcome) => void settle(outcome),
    };
  }

  function leave(ticket: string): void {
    const { waiter, openCall } = waiters.get(ticket) ?? {};
    if (openCall?.isWaitedFor(waiter)) openCall.cancel('The client hung up.');
  }
}

const isAborted = (outcome: NextOutcome): boolean =>
  outcome.kind === 'failed' && outcome.failure === 'aborted';

/** Never rejects: without the record the client is told to call again. */
export async function putRecord(
  records: OutcomeRecords,
  log: Log,
  owner: CallOwner,
  outcome: NextOutcome,
): Promise<void> {
  await records.put(owner, outcome).catch((cause: unknown) => {
    log.warn(
      'What a call at a server came to could not be written to the store; its client is told to call again.',
      { cause },
    );
  });
}

/** Params that another replica passed on. */
export const readNotification = (params: unknown): JsonObject =>
  isObject(params) ? readExact(params) : {};

// The calls of this replica that wait, or waited, for an answer of their client.

interface SuspendedCall extends CallOwner {
  readonly server: string;
  /** Size of its params; its open questions count beside them. */
  readonly bytes: number;
  readonly openCall: OpenCall;
}

type CallTable = ReturnType<typeof createCallTable>;

/** The bytes are those that a user's other calls may have. */
const MAX_PER_USER = { calls: 16, bytes: 8 * 1024 * 1024 };
const MAX_IN_ALL = { calls: 512, bytes: 64 * 1024 * 1024 };

export function createCallTable() {
  const calls = new Map<string, SuspendedCall>();

  function hasRoom(user: string | undefined): boolean {
    const all = [...calls.values()];
    // Without authentication nothing is counted per user.
    const ofUser = user === undefined ? [] : all.filter((call) => call.user === user);
    return fits(all, MAX_IN_ALL) && fits(ofUser, MAX_PER_USER);
  }

  return {
    has: (id: string) => calls.has(id),
    /** False when the user, or the process, has too many, or too much is kept for them. */
    add(call: SuspendedCall) {
      calls.set(call.id, call);
      if (hasRoom(call.user)) return true;
      calls.delete(call.id);
      return false;
    },
    /** False when what this user's calls keep, or those of all, has become too much. */
    hasRoom,
    /** Undefined where it is another user's, or at another server. */
    find({ id, user, server }: Pick<SuspendedCall, 'id' | 'user' | 'server'>) {
      const call = calls.get(id);
      return call?.user === user && call?.server === server ? call?.openCall : undefined;
    },
    remove: (id: string) => void calls.delete(id),
    list: () => [...calls.values()],
  };
}

const fits = (calls: readonly SuspendedCall[], max: typeof MAX_IN_ALL): boolean =>
  calls.length <= max.calls && calls.reduce((sum, call) => sum + countBytes(call), 0) <= max.bytes;

const countBytes = ({ bytes, openCall }: SuspendedCall): number =>
  bytes + openCall.countQuestionBytes();

// Messages between replicas about calls that wait for answers (store/replicas).

/** `ticket` names one request of a client that waits at the replica `from`. */
export type SuspendedCallMessage =
  /** To the replica of the call: the client came back. Sent again while it waits, without the answer. */
  | {
      readonly about: 'resume';
      readonly ticket: string;
      readonly from: string;
      readonly call: string;
      /** The call's user, as `nameOwner` has it. */
      readonly user?: string | undefined;
      readonly server: string;
      readonly key?: string;
      readonly answer?: unknown;
    }
  /** To the replica of the call: the client hung up. */
  | { readonly about: 'left'; readonly ticket: string; readonly call: string }
  /** To where it waits: the call goes on. */
  | { readonly about: 'going_on'; readonly ticket: string }
  /** To where it waits: nothing more comes of the call but what is in the store. */
  | { readonly about: 'settled'; readonly ticket: string }
  /** To where it waits: params of a notification of the server. */
  | { readonly about: 'progress' | 'log'; readonly ticket: string; readonly params: unknown };

const TOPICS: ReadonlySet<unknown> = new Set([
  'resume',
  'left',
  'going_on',
  'settled',
  'progress',
  'log',
]);

export const isSuspendedCallMessage = (value: unknown): value is SuspendedCallMessage =>
  isObject(value) && TOPICS.has(value.about) && typeof value.ticket === 'string';
