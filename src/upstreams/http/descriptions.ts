// §18.4: what an HTTP server says of itself: to each user where it is told who calls, else to all.
import { isDeepStrictEqual } from 'node:util';
import type { HttpUpstreamConfig } from '../config/upstream-config.ts';
import { knowsUsers } from '../credentials/server-credentials.ts';
import {
  createDescriptionMemory,
  createNameAudience,
  type NameAudience,
} from '../transport/description-memory.ts';
import { GATEWAY_CALLER, type UpstreamCaller, type UpstreamDescription } from '../upstream.ts';
import type { Availability } from './availability.ts';

export interface Descriptions {
  readonly nameAudience: NameAudience;
  find(caller: UpstreamCaller): UpstreamDescription | undefined;
  /** Undefined as well where the server was away since it said so. */
  findCurrent(caller: UpstreamCaller): UpstreamDescription | undefined;
  /** The server has said it to this caller. */
  note(caller: UpstreamCaller, description: UpstreamDescription): void;
}

export function createDescriptions(
  config: HttpUpstreamConfig,
  availability: Pick<Availability, 'onChange'>,
): Descriptions {
  const memory = createDescriptionMemory();
  const isPersonal = knowsUsers(config);
  const nameAudience = createNameAudience(isPersonal);
  // What is the same for all the gateway has just heard, when it looked whether the server is back.
  availability.onChange((isUp, _reason, wasUp) => {
    if (isPersonal && isUp && wasUp === false) memory.expireAll();
  });

  return {
    nameAudience,
    find: (caller) => memory.find(nameAudience(caller)),
    findCurrent(caller) {
      const audience = nameAudience(caller);
      return memory.isExpired(audience) ? undefined : memory.find(audience);
    },
    note(caller, description) {
      const audience = nameAudience(caller);
      const known = memory.find(audience);
      if (isPersonal || caller === GATEWAY_CALLER || known === undefined) {
        memory.note(audience, description);
      } else if (known.era !== description.era) {
        // It is another server now: the gateway asks for itself.
        memory.forget(audience);
      } else if (!isDeepStrictEqual(known, description)) {
        // It may say so to this client alone: until the gateway has asked, what all were told serves.
        memory.expire(audience);
      }
    },
  };
}
