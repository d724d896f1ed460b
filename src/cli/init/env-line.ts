// A variable in `.env`, as Node.js reads it.
import { parseEnv } from 'node:util';

const PLAIN = /^[\w./:@%+=,~…-]*$/;
const QUOTES = ["'", '"', '`'];

/**
 * In quotes where it needs any. Undefined for a value that no line can have: without quotes, its second line would be a
 * setting of its own, such as AUTH_REQUIRED=false.
 */
export function renderEnvLine(name: string, value: string): string | undefined {
  if (PLAIN.test(value)) return `${name}=${value}`;
  return QUOTES.filter((quote) => !value.includes(quote))
    .map((quote) => `${name}=${quote}${value}${quote}`)
    .find((line) => parseEnv(line)[name] === value);
}
