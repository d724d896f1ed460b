// MCP 2026-07-28 "_meta", "Request Metadata": the envelope of each request, in the body and in headers that must match it.

import { fail } from '../../errors/gateway-error.ts';
import { type GatewayRequest, getHeader } from '../../http/endpoint/message.ts';
import { JsonNumber } from '../../platform/exact-json.ts';
import { decodeUtf8, isObject } from '../../platform/json.ts';
import { readExact } from '../../platform/noted-json.ts';
import { stripUri } from '../../platform/secret-texts.ts';
import { quote } from '../../platform/text.ts';
import type { Offers } from '../catalog/catalog.ts';
import { type ClientCapabilities, readCapabilities } from '../catalog/client-requests.ts';
import type { MirroredParam } from '../catalog/content.ts';
import { type JsonRpcRequest, readMeta } from '../protocol/json-rpc.ts';
import { isLogSeverity, type LogSeverity, type Method } from '../protocol/methods.ts';
import { findEra, PROTOCOL_VERSION, SUPPORTED_VERSIONS } from '../protocol/revisions.ts';

export interface Envelope {
  readonly client: ClientCapabilities;
  /** The least severe log message that the client wants; undefined for none, or if none are written. */
  readonly logLevel: LogSeverity | undefined;
}

const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';

/**
 * @throws GatewayError `header_mismatch`, `invalid_envelope` or `unsupported_version`, naming what
 * is missing or differs.
 */
export function readEnvelope(
  request: GatewayRequest,
  { method, params }: JsonRpcRequest,
  offers: Offers,
): Envelope {
  const meta = readMeta(params);
  const claim = meta[PROTOCOL_VERSION];
  const claimed = typeof claim === 'string' ? claim : failMissing(PROTOCOL_VERSION, 'a string');
  const version = getHeader(request, 'mcp-protocol-version');
  if (version !== undefined) checkHeader('MCP-Protocol-Version', version, claimed);
  const era = findEra(claimed);
  if (era !== 'stateless') {
    const hasSessions = era === 'session';
    fail('unsupported_version', {
      details: hasSessions
        ? `Clients of ${claimed} begin with initialize, and send no version in _meta.`
        : `This service supports ${SUPPORTED_VERSIONS.join(', ')}.`,
      data: {
        // A client that claims a session revision without `initialize` needs a stateless one.
        supported: SUPPORTED_VERSIONS.filter((one) => !hasSessions || findEra(one) === 'stateless'),
        requested: claimed,
      },
    });
  }
  checkHeader('MCP-Protocol-Version', version, claimed);
  const capabilities = meta[CAPABILITIES];
  if (!isObject(capabilities)) return failMissing(CAPABILITIES, 'an object');
  checkHeader('Mcp-Method', getHeader(request, 'mcp-method'), method);
  const logLevel = meta[LOG_LEVEL];
  return {
    client: readCapabilities(capabilities),
    logLevel: offers.logging && isLogSeverity(logLevel) ? logLevel : undefined,
  };
}

const failMissing = (key: string, type: string): never =>
  fail('invalid_envelope', {
    details: `params._meta["${key}"] must be ${type}, in each request of 2026-07-28`,
  });

// MCP 2026-07-28 "Request Metadata": headers that repeat the body, for proxies that route or limit without reading bodies: they
// must match it.

/** @throws GatewayError `header_mismatch` naming the header. */
function checkHeader(name: string, value: string | undefined, bodyValue: unknown) {
  if (value !== bodyValue) failMismatch(name, value, bodyValue);
}

/** `Mcp-Name` must match the tool, prompt, resource or task in the body. A body without a name is left to the method. */
export function checkNameHeader(
  request: GatewayRequest,
  { item, namedBy: ownParam }: Method,
  params: unknown,
): void {
  const namedBy = item?.param ?? ownParam;
  if (namedBy === undefined) return;
  const value = getHeader(request, 'mcp-name');
  const name = isObject(params) ? params[namedBy] : undefined;
  if (value === undefined && typeof name !== 'string') return;
  const told = decodeHeader('Mcp-Name', value);
  if (told === name) return;
  // The details are also logged.
  const show = (one: unknown) =>
    namedBy === 'uri' && typeof one === 'string' ? stripUri(one) : one;
  failMismatch('Mcp-Name', show(told), show(name));
}

/** `Mcp-Param-*` of a tool's arguments: each requires the other. */
export function checkParamHeaders(
  request: GatewayRequest,
  mirroredParams: readonly MirroredParam[],
  args: unknown,
): void {
  if (mirroredParams.length === 0) return;
  const exact = isObject(args) ? readExact(args) : args;
  for (const { header: name, path } of mirroredParams) {
    const argument = getMember(exact, path);
    const value = decodeHeader(name, getHeader(request, name.toLowerCase()));
    if (!isSame(value, argument)) failMismatch(name, value, argument);
  }
}

const getMember = (value: unknown, [key, ...rest]: readonly string[]): unknown =>
  key === undefined
    ? value
    : getMember(isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined, rest);

/** Values that no header can carry (null, objects) are checked by the schema. */
function isSame(value: string | undefined, argument: unknown) {
  if (argument instanceof JsonNumber)
    return value === argument.text || isSameNumber(value, argument.valueOf());
  if (typeof argument === 'number') return isSameNumber(value, argument);
  if (typeof argument === 'string' || typeof argument === 'boolean')
    return value === String(argument);
  return value === undefined;
}

/** 42 and 42.0 are equal; beyond safe integers two numbers may look equal. */
const isSameNumber = (value: string | undefined, argument: number) =>
  value !== undefined &&
  /^-?\d+(\.\d+)?$/.test(value) &&
  Number.isSafeInteger(argument) &&
  Number(value) === argument;

/** Maximum length of a value in an error, in characters. */
const MAX_SHOWN = 100;

function failMismatch(name: string, value: unknown, bodyValue: unknown): never {
  const problem =
    value === undefined
      ? `is missing; it must be ${quote(bodyValue, MAX_SHOWN)}, as in the body`
      : `is ${quote(value, MAX_SHOWN)}, but the body has ${quote(bodyValue, MAX_SHOWN)}`;
  return fail('header_mismatch', { details: `The header ${name} ${problem}.` });
}

/** Decodes `=?base64?…?=`, which carries any other text. */
function decodeHeader(name: string, value: string | undefined) {
  if (value === undefined) return undefined;
  const base64 = /^=\?base64\?(.*)\?=$/.exec(value)?.[1];
  if (base64 === undefined && /^[\t\x20-\x7E]*$/.test(value)) return value;
  const bytes = Buffer.from(base64 ?? '', 'base64');
  const text = bytes.toString('base64') === base64 ? decodeUtf8(bytes) : undefined;
  return (
    text ??
    fail('header_mismatch', {
      details: `The header ${name} must be printable ASCII, or =?base64?<UTF-8 in base64>?=.`,
    })
  );
}
