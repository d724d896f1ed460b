import type { Limiter } from '../../../src/edge/limits/limiter.ts';
import { NO_SESSION } from '../../../src/store/store.ts';

/** A limiter that refuses nothing, with what its headers say. */
export const createAdmittingLimiter = (headers?: Readonly<Record<string, string>>): Limiter => ({
  startCheck: () => ({
    countAddress: async () => {},
    countInvalid: async () => {},
    checkRememberedRefusal: () => {},
    admit: async () => NO_SESSION,
    headers: () => headers,
  }),
  listRefusals: () => [],
});
