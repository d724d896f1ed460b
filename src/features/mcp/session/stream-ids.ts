// MCP "Streamable HTTP" up to 2025-11-25: a session has one stream, whichever replicas it is opened at.
import { randomUUID } from 'node:crypto';
import type { Clock } from '../../../core/clock.ts';

/**
 * Of the streams of a session the one with the highest id stays, and an id is higher than all that its
 * replica has generated or received: the higher one never arrives before the lower one is open, which it
 * ends. A replica that receives a lower id than that of its open stream sends its own once more, in case
 * the message was lost.
 */
export interface StreamIds {
  generate(): string;
  /** Ids that are generated from now on are higher than this one of another replica. */
  receive(id: string): void;
}

/** Stands for the end of a session: higher than the id of every stream. */
export const AFTER_ALL_IDS = '~';

/** They begin with the time, so that the newer one is higher also where messages were lost. */
export function createStreamIds(clock: Clock): StreamIds {
  let highest = 0;

  return {
    generate() {
      highest = Math.max(clock.now(), highest + 1);
      return `${String(highest).padStart(DIGITS, '0')}-${randomUUID()}`;
    },
    receive(id) {
      const received = Number(id.slice(0, DIGITS));
      // False for AFTER_ALL_IDS, which is no number.
      if (received > highest) highest = received;
    },
  };
}

const DIGITS = 16;
