// JSON from elsewhere, read without trust.
import { decodeUtf8 } from './utf8.ts';

/** The members of a JSON object; of each nothing is known yet. */
export type JsonObject = Readonly<Record<string, unknown>>;

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const isStringArray = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string');

/** The object that the text, or its bytes in UTF-8, spells, or undefined. */
export function parseObject(source: Buffer | string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(typeof source === 'string' ? source : utf8.decode(source));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
