// A policy: at night nobody sees or uses anything.
import type { Policy } from '../../../src/mcp/calls/policy.ts';
import type { Clock } from '../../../src/platform/clock.ts';

const isNight = (now: number): boolean => new Date(now).getUTCHours() < 6;

export const createNightPolicy = (clock: Pick<Clock, 'now'>): Policy => ({
  judge: () => (isNight(clock.now()) ? { kind: 'denied', by: 'night' } : { kind: 'allowed' }),
  mayAllowSome: () => !isNight(clock.now()),
});
