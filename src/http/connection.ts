// One connection: its requests under way, in order, and what their caller has not taken of the answers.
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { createReplyPace } from './reply-pace.ts';

export interface Connection {
  readonly socket: Socket;
  /** Its last answer is on its way: nothing more of it is looked at. */
  isClosing: boolean;
  /** Notes a request; returns how many are under way. */
  begin(res: ServerResponse): number;
  /** Those under way, in their order. */
  requests(): readonly ServerResponse[];
  /** Runs the task once the caller has taken enough of the answers before it; mostly at once. */
  whenTaken(task: () => void): void;
  /** Counts an answer until the caller has taken all of it. */
  countAnswer(res: ServerResponse, bytes: number): void;
  /** Whether its caller takes too little to go on; to be called once a second. */
  isStalled(): boolean;
  /** Whether its only request waits for a body of which nothing came since this was last asked. */
  isWaitingForBody(): boolean;
}

export interface ConnectionEvents {
  /** A request has begun, on a connection that had none. */
  onBusy(): void;
  /** The last request is over, or the connection has closed. */
  onIdle(): void;
}

/** Decisions 10: bytes of answers not yet taken at which no more requests are worked on. */
const MAX_NOT_TAKEN = 1_048_576;

export function createConnection(socket: Socket, { onBusy, onIdle }: ConnectionEvents): Connection {
  /** With the bytes of their answers. */
  const underWay = new Map<ServerResponse, number>();
  const waiting: (() => void)[] = [];
  const pace = createReplyPace();
  let notTaken = 0;
  let bytesReadBefore = -1;

  // node:http tells only the answer under way that its caller is gone, not those behind it.
  socket.once('close', () => {
    waiting.length = 0;
    for (const res of underWay.keys()) if (res.socket === null) res.destroy().emit('close');
  });

  function end(res: ServerResponse): void {
    notTaken -= underWay.get(res) ?? 0;
    underWay.delete(res);
    while (notTaken < MAX_NOT_TAKEN && waiting.length > 0) waiting.shift()?.();
    if (underWay.size === 0) onIdle();
  }

  return {
    socket,
    isClosing: false,
    begin(res) {
      underWay.set(res, 0);
      res.once('close', () => end(res));
      if (underWay.size === 1) onBusy();
      return underWay.size;
    },
    requests: () => [...underWay.keys()],
    whenTaken(task) {
      if (notTaken < MAX_NOT_TAKEN && waiting.length === 0) task();
      else waiting.push(task);
    },
    countAnswer(res, bytes) {
      if (!underWay.has(res)) return;
      underWay.set(res, bytes);
      notTaken += bytes;
    },
    isStalled: () =>
      pace.measure({
        waiting: socket.writableLength,
        taken: socket.bytesWritten - socket.writableLength,
      }),
    isWaitingForBody() {
      const isSilent = socket.bytesRead === bytesReadBefore;
      bytesReadBefore = socket.bytesRead;
      const [only] = underWay.keys();
      return isSilent && underWay.size === 1 && only?.req.complete === false;
    },
  };
}
