// What a setting is: an environment variable, declared once, as a row of its group in groups/.
import type { Rule } from './rules.ts';

export interface Setting<T> {
  readonly variable: string;
  /** Read where the variable is not set: other programs know the setting by both names. */
  readonly alias?: string;
  readonly rule: Rule<T>;
  readonly default: Default<T>;
  /** One line of Markdown, for the table of the documentation. */
  readonly summary: string;
  /** What there is to know beyond it. */
  readonly details?: string;
  /** The only `OAUTH_MODE` in which it has an effect. */
  readonly mode?: 'broker' | 'proxy';
  /** Never printed, not even when it is wrong. */
  readonly isSecret?: true;
  /** Pairs `name=value` of which only the names are printed. */
  readonly hidesValues?: true;
}

/** The value of a setting: what the environment says, or the default. */
export type Read = <T>(setting: Setting<T>) => T;

export type Default<T> = FixedDefault<T> | ComputedDefault<T>;

interface FixedDefault<T> {
  readonly value: T;
  /** As it would be written in the environment, where `String(value)` is not that. */
  readonly text?: string;
}

/** A default that depends on other settings. */
interface ComputedDefault<T> {
  readonly compute: (read: Read) => T;
  /** What it mostly is, in Markdown. */
  readonly text: string;
  /** What it is otherwise, and when (`in broker mode`). */
  readonly exceptions?: readonly (readonly [text: string, when: string])[];
}

/** The setting may be left out; its value is undefined then. */
export const NO_DEFAULT: FixedDefault<undefined> = { value: undefined, text: '' };

/** Infers the type of the value from the rule and the default. */
export const defineSetting = <const T>(row: Setting<T>): Setting<T> => row;

export const readDefault = <T>(setting: Setting<T>, read: Read): T =>
  'compute' in setting.default ? setting.default.compute(read) : setting.default.value;

/** The value of a setting that the checks at start have found to be there. */
export function requireValue<T>(value: T | undefined, { variable }: Setting<unknown>): T {
  if (value === undefined) throw new Error(`${variable} is missing`);
  return value;
}
