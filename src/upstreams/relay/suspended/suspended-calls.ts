// §18.3: a server of the session era asks a client of the stateless era. The call ends for the client, and goes on at
// the replica that began it; the client's answer may reach another one.

import { randomUUID } from 'node:crypto';
import { writeExactJson } from '../../../platform/exact-json.ts';
import type { JsonObject } from '../../../platform/json.ts';
import { buildSuspendedCallChannelName } from '../../../store/keys.ts';
import { createReplicas } from '../../../store/replicas/replicas.ts';
import type { UpstreamRuntime } from '../../upstream.ts';
import { type CallListener, type ClientReply, createWaitElsewhere } from './calls-elsewhere.ts';
import { type CallAtServer, type OpenCall, startOpenCall, type Waiter } from './open-call.ts';
import { type CallOwner, createOutcomeRecords, type NextOutcome } from './outcome-records.ts';
import { createCallTable, isSuspendedCallMessage, putRecord, serveOwnCalls } from './own-calls.ts';

export type SuspendedCalls = ReturnType<typeof createSuspendedCalls>;

export interface NewCall extends CallAtServer {
  /** What it keeps while it waits. */
  readonly params: JsonObject;
  /** Whose it is (`nameOwner`); undefined without authentication. */
  readonly user: string | undefined;
  readonly server: string;
}

export interface StartedCall {
  /** By which it is found again. */
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
  const replicas = createReplicas({ store, getSeal, clock, log, metrics, channel, isMessage });
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
