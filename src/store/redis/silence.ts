// A connection that stays silent although an answer is due is given up: its host may be gone for good.
// ioredis's own time-outs would also end those whose answers this process had no time to read (ticks.ts).
import type { Redis } from 'ioredis';
import { startTicking } from './ticks.ts';

/** Until a connection stands: long enough for the second SYN, which follows the first after a second. */
export const CONNECT_MS = 1500;
/** Until the next byte of an answer. */
const SILENCE_MS = 2000;
const TICK_MS = 250;

/** Watches a client from its next attempt to connect until its end, as often as it begins. */
export function endWhenSilent(client: Redis): void {
  let stop: (() => void) | undefined;
  let bytesBefore = 0;
  let silentMs = 0;

  function check(): void {
    const { status, stream, commandQueue } = client;
    const isConnecting = status === 'connecting';
    const bytes = stream?.bytesRead ?? 0;
    const isSilent = (isConnecting || commandQueue.length > 0) && bytes === bytesBefore;
    bytesBefore = bytes;
    silentMs = isSilent ? silentMs + TICK_MS : 0;
    const limit = isConnecting ? CONNECT_MS : SILENCE_MS;
    if (silentMs < limit) return;
    silentMs = 0;
    const owed = isConnecting ? 'connection' : 'answer';
    stream?.destroy(new Error(`no ${owed} within ${limit} ms`));
  }

  client.on('connecting', () => {
    silentMs = 0;
    stop ??= startTicking(TICK_MS, check);
  });
  client.on('end', () => {
    stop?.();
    stop = undefined;
  });
}
