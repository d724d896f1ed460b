// Spec §4.12, §7.2, decisions 7: what a response says of the limits.
import type { Verdict } from '../../core/store/store.ts';

export const limitHeaders = ({ limit, remaining, resetAt }: Verdict) => ({
  'X-RateLimit-Limit': String(limit),
  'X-RateLimit-Remaining': String(remaining),
  // Rounded up: at that second the entry is gone for certain.
  'X-RateLimit-Reset': String(Math.ceil(resetAt / 1000)),
});

/** Whole seconds until the oldest entry leaves the window, at least 1. */
export const retryAfter = ({ resetInMs }: Verdict): number =>
  Math.max(1, Math.ceil(resetInMs / 1000));
