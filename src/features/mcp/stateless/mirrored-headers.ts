// MCP 2026-07-28 "Request Metadata": headers that repeat what the body says, for whoever routes or
// limits without reading bodies; so they must not say anything else.
import { fail } from '../../../core/errors/gateway-error.ts';
import { isObject } from '../../../core/json.ts';
import { type GatewayRequest, header } from '../../../core/message.ts';
import { decodeUtf8 } from '../../../core/utf8.ts';
import type { Method } from '../calls/methods.ts';
import type { MirroredParam } from '../catalog/define/mirrored.ts';

/** @throws GatewayError `header_mismatch` naming the header. */
export function checkHeader(name: string, value: string | undefined, said: unknown): void {
  if (value !== said) mismatch(name, value, said);
}

/** `Mcp-Name` says the tool, prompt or resource; a body without one is the method's matter. */
export function checkSubject(request: GatewayRequest, { subject }: Method, params: unknown): void {
  if (subject === undefined) return;
  const named = header(request, 'mcp-name');
  const said = isObject(params) ? params[subject] : undefined;
  if (named === undefined && typeof said !== 'string') return;
  checkHeader('Mcp-Name', plain('Mcp-Name', named), said);
}

/** `Mcp-Param-*` of a tool's arguments: neither without the other. */
export function checkMirrored(
  request: GatewayRequest,
  mirrored: readonly MirroredParam[],
  params: unknown,
): void {
  for (const { header: name, path } of mirrored) {
    const said = at(isObject(params) ? params.arguments : undefined, path);
    const value = plain(name, header(request, name.toLowerCase()));
    if (!isSame(value, said)) mismatch(name, value, said);
  }
}

const at = (value: unknown, [key, ...rest]: readonly string[]): unknown =>
  key === undefined
    ? value
    : at(isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined, rest);

/** What no header can say (null, an object) is the schema's matter. */
function isSame(value: string | undefined, said: unknown): boolean {
  if (typeof said === 'number') return isNumber(value, said);
  if (typeof said === 'string' || typeof said === 'boolean') return value === String(said);
  return value === undefined;
}

/** 42 and 42.0 are one number; beyond the safe ones two may look like one. */
const isNumber = (value: string | undefined, said: number): boolean =>
  value !== undefined &&
  /^-?\d+(\.\d+)?$/.test(value) &&
  Number.isSafeInteger(said) &&
  Number(value) === said;

function mismatch(name: string, value: string | undefined, said: unknown): never {
  const problem =
    value === undefined
      ? `is missing; it must say ${shown(said)}, as the body does`
      : `says ${shown(value)}, and the body ${shown(said)}`;
  return fail('header_mismatch', { details: `The header ${name} ${problem}.` });
}

const shown = (value: unknown): string => (JSON.stringify(value) ?? 'nothing').slice(0, 100);

/** Values that a header cannot carry come as `=?base64?…?=`. */
function plain(name: string, value: string | undefined): string | undefined {
  if (value === undefined) return undefined;
  const encoded = /^=\?base64\?(.*)\?=$/.exec(value)?.[1];
  const text = encoded === undefined ? printable(value) : decoded(encoded);
  return (
    text ??
    fail('header_mismatch', {
      details: `The header ${name} must be printable ASCII, or =?base64?<UTF-8 in base64>?=.`,
    })
  );
}

const printable = (value: string) => (/^[\t\x20-\x7E]*$/.test(value) ? value : undefined);

function decoded(base64: string): string | undefined {
  const bytes = Buffer.from(base64, 'base64');
  return bytes.toString('base64') === base64 ? decodeUtf8(bytes) : undefined;
}
