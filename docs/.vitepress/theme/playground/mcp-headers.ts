// MCP 2026-07-28 "Request Metadata": headers that repeat what the body says.
import { isObject } from './json.ts';

/** As it is where a header can carry it, else in Base64. */
export const toHeaderValue = (text: string): string =>
  /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.startsWith('=?base64?')
    ? text
    : `=?base64?${btoa(String.fromCharCode(...new TextEncoder().encode(text)))}?=`;

/** The arguments that a tool marks with `x-mcp-header`. */
export function mirrorArguments(schema: unknown, value: unknown): Record<string, string> {
  if (!isObject(schema)) return {};
  const name = schema['x-mcp-header'];
  if (typeof name === 'string' && isScalar(value)) {
    return { [`Mcp-Param-${name}`]: toHeaderValue(String(value)) };
  }
  if (!isObject(schema.properties) || !isObject(value)) return {};
  return Object.assign(
    {},
    ...Object.entries(schema.properties).map(([key, member]) =>
      mirrorArguments(member, value[key]),
    ),
  );
}

const isScalar = (value: unknown): value is string | number | boolean =>
  ['string', 'number', 'boolean'].includes(typeof value);
