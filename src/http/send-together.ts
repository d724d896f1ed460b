import type { Connection } from './connection.ts';

/** Sends to the connection now, or a moment later. */
export type SendTogether = (connection: Connection, send: () => void) => void;

/**
 * What is ready in the same turn of the event loop is sent at its end, one after the other. Between the
 * work on two requests a write costs several times as much: it wakes up whoever reads, and finds the
 * processor's caches full of other code: it was a third of a call's CPU at 32 connections. A caller who
 * is alone would only wait: where the latest reply went to the same connection, this one goes at once.
 */
export function createSendTogether(): SendTogether {
  let waiting: (() => void)[] = [];
  let latest: Connection | undefined;

  function sendAll(): void {
    const sends = waiting;
    waiting = [];
    for (const send of sends) send();
  }

  return function sendTogether(connection, send) {
    const isAlone = connection === latest;
    latest = connection;
    if (isAlone) send();
    else if (waiting.push(send) === 1) setImmediate(sendAll);
  };
}
