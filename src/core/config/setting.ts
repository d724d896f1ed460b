import type { Config } from './config.ts';
import type { Rule } from './rules.ts';

export interface Setting<T> {
  readonly variable: string;
  /** Read where the variable is not set: other programs know the setting by both names. */
  readonly alias?: string;
  readonly rule: Rule<NonNullable<T>>;
  /** The value when the variable is unset; settings above it in the table may decide. */
  readonly fallback: (above: Config) => T;
  /** The default as shown in documentation; empty when there is none. */
  readonly shown: string;
  readonly help: string;
  readonly chapter: Chapter;
  /** Never printed, not even when it is wrong. */
  readonly secret?: true;
}

export const CHAPTERS = [
  'Service',
  'Store and sessions',
  'Tokens',
  'OAuth proxy',
  'Log-in',
  'Browsers and proxies',
  'Outbound network',
  'Rate limits',
] as const;
export type Chapter = (typeof CHAPTERS)[number];
