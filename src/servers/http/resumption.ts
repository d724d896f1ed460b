// Resumes an answer (MCP "Resumability and Redelivery") whose stream broke, or was closed by the server before its end (polling): it
// is read on by GET. The call is never sent again.
import { type Clock, createAttempts } from '../../platform/clock.ts';
import { BACK_OFF, pauseAfter } from '../transport/process-share.ts';
import { createEventCursor } from './event-stream.ts';
import { type ExchangeEnd, type ExchangeListener, isEventStream } from './exchange.ts';

export type Resumption = ReturnType<typeof createResumption>;

/** An event that comes again is known by these. */
const REMEMBERED_IDS = 32;
/** In a row: about a minute, in which a server may be started anew. */
const MAX_FAILURES = 6;

/**
 * `open` opens a stream that begins after this event; it returns undefined once the server may not be asked any more. `reader` gets
 * the messages, and the end.
 */
export function createResumption(
  clock: Clock,
  reader: Required<Pick<ExchangeListener, 'onMessage' | 'onEnd'>> & ExchangeListener,
  open: (lastEventId: string, listener: ExchangeListener) => Promise<() => void> | undefined,
) {
  const cursor = createEventCursor(REMEMBERED_IDS);
  let isOver = false;
  const attempts = createAttempts(clock, pauseAfter);
  let stopStream = () => {};
  /** The end of the call if the server does not resume its stream. */
  let broken: ExchangeEnd | undefined;

  function comeBack() {
    let hasBegun = false;
    const { caller, cookies } = reader;
    const listener: ExchangeListener = {
      caller,
      cookies,
      openCursor: () => cursor,
      onStart(headers) {
        if (!isEventStream(headers)) return giveUp();
        hasBegun = true;
        attempts.noteSuccess();
      },
      onMessage: (value, headers) => reader.onMessage(value, headers),
      onEnd(end) {
        stopStream = () => {};
        if (hasBegun) reader.onEnd(end);
        else if (isRefusal(end) || attempts.countFailures() + 1 >= MAX_FAILURES) giveUp();
        else attempts.again(comeBack, cursor.retryMs());
      },
    };
    const lastId = cursor.lastId();
    const opening = lastId === undefined ? undefined : open(lastId, listener);
    if (opening === undefined) giveUp();
    else
      opening.then((started) => {
        stopStream = started;
        if (isOver) started();
      }, giveUp);
  }

  function giveUp() {
    if (isOver) return;
    stop();
    if (broken !== undefined) reader.onEnd(broken);
  }

  function stop() {
    isOver = true;
    attempts.stop();
    stopStream();
  }

  return {
    cursor,
    /** True if the answer, whose stream has ended like this, is read on. */
    goOn(end: ExchangeEnd) {
      if (isOver || cursor.lastId() === undefined || !isBroken(end)) return false;
      broken = end;
      attempts.after(cursor.retryMs() ?? BACK_OFF.firstMs, comeBack);
      return true;
    },
    /** True if the stream was opened again. */
    isReading: () => broken !== undefined,
    stop,
  };
}

/** Read to its end without the answer, or cut off in the middle: nothing is wrong with what has come. */
const isBroken = (end: ExchangeEnd) =>
  end.kind === 'complete' || (end.kind === 'failed' && end.isCut === true);

/** 409: the server has not noticed yet that the connection broke. 429 and 5xx pass. */
const isRefusal = (end: ExchangeEnd) =>
  end.kind === 'refused' && end.status < 500 && end.status !== 409 && end.status !== 429;
