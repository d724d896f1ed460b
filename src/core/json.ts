// JSON from elsewhere, read without trust.
import { decodeUtf8 } from './utf8.ts';

/** The members of a JSON object; of each nothing is known yet. */
export type JsonObject = Readonly<Record<string, unknown>>;

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const isStringArray = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string');

/** The object that the text, or its bytes in UTF-8, spells; undefined for anything else. */
export function parseObject(source: Uint8Array | string): JsonObject | undefined {
  const text = typeof source === 'string' ? source : decodeUtf8(source);
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Whether so many levels of objects and arrays are enough for the value. */
export const hasLevels = (value: unknown, levels: number): boolean =>
  typeof value !== 'object' ||
  value === null ||
  (levels > 0 && Object.values(value).every((member) => hasLevels(member, levels - 1)));
