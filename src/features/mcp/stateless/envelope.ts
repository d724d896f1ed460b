// MCP 2026-07-28 "_meta", "Request Metadata": what each request says of itself, in the body and in
// headers that must say the same.
import { fail } from '../../../core/errors/gateway-error.ts';
import { isObject } from '../../../core/json.ts';
import { type GatewayRequest, header } from '../../../core/message.ts';
import { isLogSeverity } from '../calls/context.ts';
import type { LogSeverity } from '../catalog/catalog.ts';
import { type ClientCapabilities, readCapabilities } from '../catalog/client-requests.ts';
import { PROTOCOL_VERSION } from '../protocol/era-of-message.ts';
import { metaOf, type Request } from '../protocol/json-rpc.ts';
import { eraOf, SUPPORTED_VERSIONS } from '../protocol/revisions.ts';
import { checkHeader } from './mirrored-headers.ts';

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
      data: { supported: supportedFor(claimed), requested: claimed },
    });
  }
  checkHeader('MCP-Protocol-Version', named, claimed);
}

/** To whom claims a revision of sessions, others of them are no help. */
const supportedFor = (claimed: string): readonly string[] =>
  eraOf(claimed) === 'session'
    ? SUPPORTED_VERSIONS.filter((version) => eraOf(version) === 'stateless')
    : SUPPORTED_VERSIONS;

const unsupported = (claimed: string) =>
  eraOf(claimed) === 'session'
    ? `${claimed} begins with initialize, and its requests carry no version in _meta.`
    : `This service speaks ${SUPPORTED_VERSIONS.join(', ')}.`;

const lacks = (key: string, type: string): never =>
  fail('invalid_envelope', {
    details: `params._meta["${key}"] must be ${type}, in each request of 2026-07-28`,
  });
