// Decisions 10, "Bounds": one budget of bytes of request bodies.
import { GatewayError } from '../core/errors/gateway-error.ts';
import type { Pace } from './body-pace.ts';

export interface BodyBudget {
  /** Notes a body that begins to arrive. */
  add(body: ArrivingBody): void;
  /** Counts bytes that have arrived. */
  count(bytes: number): void;
  /** Drops bodies until all have room: the slowest ones, or this one where calls hold the room. */
  makeRoomFor(newest: ArrivingBody): void;
  /** The body arrives no longer; its bytes do not count any more. */
  remove(body: ArrivingBody): void;
  /** Counts bytes of a complete body, whose call runs, until what is returned is called. */
  hold(bytes: number): () => void;
  hasRoom(bytes: number): boolean;
  isEmpty(): boolean;
}

export interface ArrivingBody {
  /** So far. */
  bytes: number;
  /** Rises with each piece of any body. */
  turn: number;
  readonly pace: Pace;
  /** Answers the request with this, and counts the body no longer. */
  drop(cause: GatewayError): void;
}

export function createBodyBudget(max: number): BodyBudget {
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
      if (heldBytes + newest.bytes > max) newest.drop(noRoomBesideCalls());
      while (heldBytes + arrivingBytes > max && arriving.size > 0) {
        slowestOf(arriving)?.drop(tooSlowForRoom());
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
    hasRoom: (bytes) => heldBytes + arrivingBytes + bytes <= max,
    isEmpty: () => arriving.size === 0 && heldBytes === 0,
  };
}

/** Of several that are as slow, the one of which the longest nothing came. */
function slowestOf(bodies: Iterable<ArrivingBody>): ArrivingBody | undefined {
  let slowest: ArrivingBody | undefined;
  for (const body of bodies) if (slowest === undefined || isSlower(body, slowest)) slowest = body;
  return slowest;
}

function isSlower(one: ArrivingBody, other: ArrivingBody): boolean {
  const [a, b] = [one.pace.speed(), other.pace.speed()];
  return a === b ? one.turn < other.turn : a < b;
}

const headers = { Connection: 'close', 'Retry-After': '1' };

const noRoomBesideCalls = () =>
  new GatewayError('overloaded', {
    details: 'The calls of this user that are running leave no room for this body. Try again.',
    headers,
  });

const tooSlowForRoom = () =>
  new GatewayError('overloaded', {
    details: 'Too many bodies are arriving, and this one was the slowest. Try again.',
    headers,
  });
