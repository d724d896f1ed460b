// The side of the replica that began a call: it answers the server, and tells where the client's retry waits.
import { isObject, type JsonObject } from '../../../platform/json.ts';
import type { Log } from '../../../platform/log.ts';
import type { Replicas } from '../../../store/replicas/replicas.ts';
import type { CallTable } from './call-table.ts';
import type { SuspendedCallMessage } from './messages.ts';
import type { OpenCall, Waiter } from './open-call.ts';
import type { Outcome } from './outcome.ts';
import type { CallOwner, OutcomeRecords } from './outcome-records.ts';

export interface OwnCallsDeps {
  readonly table: CallTable;
  readonly records: OutcomeRecords;
  readonly replicas: Replicas<SuspendedCallMessage>;
  readonly log: Log;
}

type Resume = Extract<SuspendedCallMessage, { about: 'resume' }>;

/** A retry that waits at another replica. */
interface RemoteWaiter {
  readonly waiter: Waiter;
  readonly openCall: OpenCall;
}

/** Server notifications on their way to another replica; more are dropped, as for a client that reads too slowly. */
const MAX_UNDER_WAY = 16;

/** Listens to the other replicas. */
export function serveOwnCalls({ table, records, replicas, log }: OwnCallsDeps): void {
  const waiters = new Map<string, RemoteWaiter>();

  // What is lost is asked for again by the replica that waits.
  const send = (message: SuspendedCallMessage, to: string): Promise<void> =>
    replicas.send(message, to).catch((cause: unknown) => {
      log.debug('A message to the replica where a client waits could not be sent.', { cause });
    });

  replicas.listen((message) => {
    if (message.about === 'resume') resume(message);
    if (message.about === 'left') leave(message.ticket);
  });

  function resume({ ticket, from, call: id, sub, server, key, answer }: Resume): void {
    const openCall = table.find({ id, sub, server });
    if (waiters.has(ticket)) {
      void send({ about: 'going_on', ticket }, from);
    } else if (openCall === undefined || key === undefined) {
      void send({ about: 'settled', ticket }, from);
    } else {
      void send({ about: 'going_on', ticket }, from);
      const waiter = createWaiter({ id, sub }, ticket, from);
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

    async function settle(outcome: Outcome): Promise<void> {
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

const isAborted = (outcome: Outcome): boolean =>
  outcome.kind === 'failed' && outcome.failure === 'aborted';

/** Never rejects: without the record the client is told to call again. */
export async function putRecord(
  records: OutcomeRecords,
  log: Log,
  owner: CallOwner,
  outcome: Outcome,
): Promise<void> {
  await records.put(owner, outcome).catch((cause: unknown) => {
    log.warn(
      'What a call at a server came to could not be written to the store; its client is told to call again.',
      { cause },
    );
  });
}

/** Params that another replica passed on. */
export const readNotification = (params: unknown): JsonObject => (isObject(params) ? params : {});
