// How much of the same the tests do that send thousands of requests, to find what goes wrong once in many.

/** CI does all of it: LONG_TESTS=true. By hand, less of it has to do. */
export const chooseCount = (short: number, long: number): number =>
  process.env.LONG_TESTS === 'true' ? long : short;

/** For what does so much of it that a slow machine needs minutes. */
export const LONG_MS = 300_000;
