import type { Limiter } from '../../../src/http/limits/limiter.ts';
import { NO_GRANT, NO_SESSION } from '../../../src/store/store.ts';

/** A limiter that refuses nothing, with what its headers say. */
export const createAdmittingLimiter = (headers?: Readonly<Record<string, string>>): Limiter => ({
  startCheck: () => ({
    countAddress: async () => {},
    countInvalid: async () => {},
    checkRememberedRefusal: () => {},
    admit: async () => ({ session: NO_SESSION, grant: NO_GRANT }),
    headers: () => headers,
  }),
  listRefusals: () => [],
});
