// JSON of a server: bounded before it is parsed.
import { findExceededBound } from '../../platform/json.ts';

/** Far more than anybody writes, far less than fills a stack or the memory. */
const BOUNDS = { levels: 200, values: 500_000 };

/** Undefined for what is no JSON, or nested too deep, or has too many values. */
export function parseServerJson(text: string): { readonly value: unknown } | undefined {
  if (findExceededBound(text, BOUNDS) !== undefined) return undefined;
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}
