import type { LimitCheck } from '../../../src/features/limits/limiter.ts';

/** The check of a request that no limit refuses, with what its headers say. */
export const createAdmittingCheck = (headers?: Readonly<Record<string, string>>): LimitCheck => ({
  countAddress: async () => {},
  countRefused: async () => {},
  refuseRemembered: () => {},
  admit: async () => ({ record: undefined }),
  headers: () => headers,
});
