// What a setting is: one environment variable, told once.
import type { Rule } from './rules.ts';

/** One environment variable; a row of its group in groups/. */
export interface Setting<T> {
  readonly variable: string;
  /** Read where the variable is not set: other programs know the setting by both names. */
  readonly alias?: string;
  readonly rule: Rule<T>;
  readonly default: Default<T>;
  readonly help: string;
  /** Never printed, not even when it is wrong. */
  readonly secret?: true;
}

/** The value of a setting: what the environment says, or the default. */
export type Read = <T>(setting: Setting<T>) => T;

export interface Default<T> {
  /** As the documentation shows it; empty when there is none. */
  readonly text: string;
  /** Whether `text` is what one would set, and no description. */
  readonly isValue: boolean;
  readonly value: (read: Read) => T;
}

/** Finds the type of the setting from its rule and its default. */
export const setting = <T>(row: Setting<T>): Setting<T> => row;

/** A default that is always the same; `text` where `String` does not say it as a variable would. */
export const fixed = <const T>(value: T, text = String(value)): Default<T> => ({
  text,
  isValue: true,
  value: () => value,
});

/** The setting may be left out; its value is undefined then. */
export const none: Default<undefined> = { text: '', isValue: false, value: () => undefined };

/** A default that other settings decide, and how the documentation tells it. */
export const derived = <T>(text: string, value: (read: Read) => T): Default<T> => ({
  text,
  isValue: false,
  value,
});

/** The value of a setting that the checks at start have found to be there. */
export function requireValue<T>(value: T | undefined, { variable }: Setting<unknown>): T {
  if (value === undefined) throw new Error(`${variable} is missing`);
  return value;
}
