// MCP "Resumability and Redelivery": an answer whose stream broke, or that the server closed before its end (polling), is
// read on by GET. The call itself is never sent again.

import { type Clock, createAttempts } from '../../platform/clock.ts';
import { BACK_OFF, pauseAfter } from '../transport/process-share.ts';
import { createEventCursor, type EventCursor } from './answer-body.ts';
import { type ExchangeEnd, type ExchangeListener, isEventStream } from './exchange.ts';

/** Opens a stream that begins after this event; undefined where the server may no longer be asked. */
export type Reopen = (
  lastEventId: string,
  listener: ExchangeListener,
) => Promise<() => void> | undefined;

export interface Resumption {
  readonly cursor: EventCursor;
  /** True if the stream that has ended like this is read on; what comes of it is told to `onMessage` and `onEnd`. */
  goOn(end: ExchangeEnd): boolean;
  /** True if what comes now comes on a stream that was opened again. */
  isReading(): boolean;
  stop(): void;
}

/** An event that comes again is known by these. */
const REMEMBERED_IDS = 32;
/** In a row: about a minute, in which a server may be started anew. */
const MAX_FAILURES = 6;

export function createResumption(
  clock: Clock,
  reopen: Reopen,
  listener: Pick<ExchangeListener, 'onMessage' | 'onEnd'>,
): Resumption {
  const cursor = createEventCursor(REMEMBERED_IDS);
  let isOver = false;
  const attempts = createAttempts(clock, pauseAfter);
  let stopStream = () => {};
  /** The end of the call if the server does not let it go on. */
  let broken: ExchangeEnd | undefined;

  function goOn(end: ExchangeEnd): boolean {
    if (isOver || cursor.lastId() === undefined || !isBroken(end)) return false;
    broken = end;
    attempts.after(cursor.retryMs() ?? BACK_OFF.firstMs, comeBack);
    return true;
  }

  function comeBack(): void {
    const lastId = cursor.lastId();
    const opening = lastId === undefined ? undefined : reopen(lastId, createListener());
    if (opening === undefined) giveUp();
    else {
      opening.then((started) => {
        stopStream = started;
        if (isOver) started();
      }, giveUp);
    }
  }

  function createListener(): ExchangeListener {
    let hasBegun = false;
    return {
      openCursor: () => cursor,
      onStart(headers) {
        if (!isEventStream(headers)) return giveUp();
        hasBegun = true;
        attempts.noteSuccess();
      },
      onMessage: (value, headers) => listener.onMessage(value, headers),
      onEnd(end) {
        stopStream = () => {};
        if (hasBegun) listener.onEnd(end);
        else if (isRefusal(end)) giveUp();
        else if (attempts.countFailures() + 1 >= MAX_FAILURES) giveUp();
        else attempts.again(comeBack, cursor.retryMs());
      },
    };
  }

  function giveUp(): void {
    if (isOver) return;
    stop();
    if (broken !== undefined) listener.onEnd(broken);
  }

  function stop(): void {
    isOver = true;
    attempts.stop();
    stopStream();
  }

  return { cursor, goOn, isReading: () => broken !== undefined, stop };
}

/** Read to its end without the answer, or cut off in the middle: nothing is wrong with what has come. */
const isBroken = (end: ExchangeEnd): boolean =>
  end.kind === 'complete' || (end.kind === 'failed' && end.isCut === true);

/** 409: the server has not noticed yet that the connection broke. 429 and 5xx pass. */
const isRefusal = (end: ExchangeEnd): boolean =>
  end.kind === 'refused' && end.status < 500 && end.status !== 409 && end.status !== 429;
