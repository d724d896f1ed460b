// Spec §8: the three variables of a limit group, the global one with GLOBAL before RATE.
import { integer } from './rules.ts';
import type { Setting } from './setting.ts';

const THIRTY_DAYS_MS = 2_592_000_000;

type LimitGroupName = 'mcp' | 'dcr' | 'authorize' | 'consent' | 'callback' | 'token';

type GroupSettings<Group extends string> = {
  readonly [Name in
    | `${Group}RateLimitWindowMs`
    | `${Group}RateLimitMax`
    | `${Group}GlobalRateLimitMax`]: Setting<number>;
};

/** The settings of one group, as members of the configuration. */
export function limitSettings<const Group extends LimitGroupName>(
  group: Group,
  prefix: string,
  what: string,
  windowMs: number,
  max: number,
  globalMax: number,
): GroupSettings<Group> {
  const setting = (variable: string, high: number, value: number, help: string) => ({
    variable,
    rule: integer(1, high),
    fallback: () => value,
    shown: String(value),
    help,
    chapter: 'Rate limits' as const,
  });
  return {
    [`${group}RateLimitWindowMs`]: setting(
      `${prefix}_RATE_LIMIT_WINDOW_MS`,
      THIRTY_DAYS_MS,
      windowMs,
      `Sliding window for ${what}, in milliseconds.`,
    ),
    [`${group}RateLimitMax`]: setting(
      `${prefix}_RATE_LIMIT_MAX`,
      1_000_000_000,
      max,
      `Most ${what} per address and window.`,
    ),
    [`${group}GlobalRateLimitMax`]: setting(
      `${prefix}_GLOBAL_RATE_LIMIT_MAX`,
      1_000_000_000,
      globalMax,
      `Most ${what} of all callers per window.`,
    ),
  } as unknown as GroupSettings<Group>;
}
