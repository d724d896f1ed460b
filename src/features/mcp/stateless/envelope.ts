// MCP 2026-07-28 "_meta", "Request Metadata": what each request says of itself, in the body and in
// headers that must say the same.
import { fail } from '../../../core/errors/gateway-error.ts';
import { type GatewayRequest, header } from '../../../core/message.ts';
import type { LogSeverity } from '../catalog.ts';
import { type ClientCapabilities, readCapabilities } from '../client-requests.ts';
import { isLogSeverity } from '../context.ts';
import { PROTOCOL_VERSION } from '../eras.ts';
import { isObject, metaOf, type Request } from '../json-rpc.ts';
import type { Method } from '../methods.ts';
import { eraOf, SUPPORTED_VERSIONS } from '../revisions.ts';

export interface Envelope {
  readonly client: ClientCapabilities;
  readonly logLevel: LogSeverity | undefined;
}

const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';

/**
 * @throws GatewayError `header_mismatch`, `invalid_envelope` or `unsupported_version`, naming what
 * is missing or differs.
 */
export function readEnvelope(request: GatewayRequest, { method, params }: Request): Envelope {
  const meta = metaOf(params);
  checkVersion(header(request, 'mcp-protocol-version'), meta[PROTOCOL_VERSION]);
  const declared = meta[CAPABILITIES];
  if (!isObject(declared)) return lacks(CAPABILITIES, 'an object');
  checkHeader('Mcp-Method', header(request, 'mcp-method'), method);
  const logLevel = meta[LOG_LEVEL];
  return {
    client: readCapabilities(declared),
    logLevel: isLogSeverity(logLevel) ? logLevel : undefined,
  };
}

function checkVersion(named: string | undefined, claim: unknown): void {
  const claimed = typeof claim === 'string' ? claim : lacks(PROTOCOL_VERSION, 'a string');
  if (named !== undefined) checkHeader('MCP-Protocol-Version', named, claimed);
  if (eraOf(claimed) !== 'stateless') {
    fail('unsupported_version', {
      details: unsupported(claimed),
      data: { supported: SUPPORTED_VERSIONS.filter((one) => one !== claimed), requested: claimed },
    });
  }
  checkHeader('MCP-Protocol-Version', named, claimed);
}

const unsupported = (claimed: string) =>
  eraOf(claimed) === 'session'
    ? `${claimed} begins with initialize, and its requests carry no version in _meta.`
    : `This service speaks ${SUPPORTED_VERSIONS.join(', ')}.`;

/** `Mcp-Name` says the tool, prompt or resource; a body without one is the method's matter. */
export function checkSubject(request: GatewayRequest, { subject }: Method, params: unknown): void {
  if (subject === undefined) return;
  const named = header(request, 'mcp-name');
  const said = isObject(params) ? params[subject] : undefined;
  if (named === undefined && typeof said !== 'string') return;
  checkHeader('Mcp-Name', named === undefined ? undefined : plain(named), said);
}

function checkHeader(name: string, value: string | undefined, said: unknown): void {
  if (value === said) return;
  const problem = value === undefined ? 'is missing' : 'does not say the same as the body';
  fail('header_mismatch', { details: `The header ${name} ${problem}.` });
}

/** Values that a header cannot carry come as `=?base64?…?=`. */
function plain(value: string): string {
  const encoded = /^=\?base64\?(.*)\?=$/.exec(value)?.[1];
  const text = encoded === undefined ? printable(value) : decoded(encoded);
  return (
    text ??
    fail('header_mismatch', {
      details: 'The header Mcp-Name must be printable ASCII, or =?base64?<UTF-8 in base64>?=.',
    })
  );
}

const printable = (value: string) => (/^[\t\x20-\x7E]*$/.test(value) ? value : undefined);

function decoded(base64: string): string | undefined {
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.toString('base64') !== base64) return undefined;
  try {
    return utf8.decode(bytes);
  } catch {
    return undefined;
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

const lacks = (key: string, type: string): never =>
  fail('invalid_envelope', { details: `params._meta["${key}"] must be ${type}` });
