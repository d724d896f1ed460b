// One budget of bytes that request bodies may take (§12).
import { GatewayError } from '../core/errors/gateway-error.ts';
import type { SpeedMeter } from './body-speed.ts';

export interface MemoryBudget {
  /** Adds a body that begins to arrive. */
  add(body: ArrivingBody): void;
  /** Counts bytes that have arrived. */
  count(bytes: number): void;
  /** Drops bodies until all have room: the slowest ones, or this one where calls hold the room. */
  makeRoomFor(newest: ArrivingBody): void;
  /** The body arrives no longer; its bytes do not count any more. */
  remove(body: ArrivingBody): void;
  /** Counts bytes of a complete body, whose call runs, until the returned function is called. */
  hold(bytes: number): () => void;
  hasRoomFor(bytes: number): boolean;
  isEmpty(): boolean;
}

export interface ArrivingBody {
  /** So far. */
  bytes: number;
  /** When its last piece came: rises with each piece of any body. */
  lastPiece: number;
  readonly speed: SpeedMeter;
  /** Replies to the request with this, and counts the body no longer. */
  drop(cause: GatewayError): void;
}

export function createMemoryBudget(maxBytes: number): MemoryBudget {
  const arriving = new Set<ArrivingBody>();
  let arrivingBytes = 0;
  let heldBytes = 0;

  return {
    add(body) {
      arriving.add(body);
    },
    count(bytes) {
      arrivingBytes += bytes;
    },
    makeRoomFor(newest) {
      if (heldBytes + newest.bytes > maxBytes) newest.drop(createNoRoomError());
      while (heldBytes + arrivingBytes > maxBytes && arriving.size > 0) {
        findSlowest(arriving)?.drop(createSlowestError());
      }
    },
    remove(body) {
      if (arriving.delete(body)) arrivingBytes -= body.bytes;
    },
    hold(bytes) {
      heldBytes += bytes;
      return () => {
        heldBytes -= bytes;
      };
    },
    hasRoomFor: (bytes) => heldBytes + arrivingBytes + bytes <= maxBytes,
    isEmpty: () => arriving.size === 0 && heldBytes === 0,
  };
}

/** Of several that are as slow, the one of which the longest nothing came. */
function findSlowest(bodies: Iterable<ArrivingBody>): ArrivingBody | undefined {
  let slowest: ArrivingBody | undefined;
  for (const body of bodies) if (slowest === undefined || isSlower(body, slowest)) slowest = body;
  return slowest;
}

function isSlower(one: ArrivingBody, other: ArrivingBody): boolean {
  const [a, b] = [one.speed.bytesPerSecond(), other.speed.bytesPerSecond()];
  return a === b ? one.lastPiece < other.lastPiece : a < b;
}

const headers = { Connection: 'close', 'Retry-After': '1' };

const createNoRoomError = () =>
  new GatewayError('overloaded', {
    details:
      'Your running calls use all the memory that their request bodies may take. Try again when one of them has ended.',
    headers,
  });

const createSlowestError = () =>
  new GatewayError('overloaded', {
    details:
      'Too many request bodies are arriving at the same time, and this one was the slowest. Try again.',
    headers,
  });
