import type { Limiter } from '../../../src/http/limits/limiter.ts';
import { NO_GRANT, NO_SESSION } from '../../../src/store/store.ts';

/** A limiter that refuses nothing, with the limit that its headers say. */
export const createAdmittingLimiter = (limit?: number): Limiter => ({
  startCheck: () => ({
    countAddress: async () => {},
    countInvalid: async () => {},
    checkRememberedRefusal: () => {},
    admit: async () => ({ session: NO_SESSION, grant: NO_GRANT }),
    addressVerdict:
      limit === undefined
        ? undefined
        : { isAdmitted: true, scope: 'ip', limit, remaining: limit, resetAt: 0, resetInMs: 0 },
  }),
  listRefusals: () => [],
});
