// MCP 2026-07-28 "_meta", "Request Metadata": what each request says of itself, in the body and in
// headers that must say the same.

import { type GatewayRequest, getHeader } from '../../endpoint/message.ts';
import { fail } from '../../errors/gateway-error.ts';
import { isObject } from '../../platform/json.ts';
import { type JsonRpcRequest, readMeta } from '../../protocol/json-rpc.ts';
import { isLogSeverity, type LogSeverity } from '../../protocol/log-severity.ts';
import { findEra, PROTOCOL_VERSION, SUPPORTED_VERSIONS } from '../../protocol/revisions.ts';
import type { Offers } from '../catalog/catalog.ts';
import { type ClientCapabilities, readCapabilities } from '../catalog/client-requests.ts';
import { checkHeader } from './request-headers.ts';

export interface Envelope {
  readonly client: ClientCapabilities;
  /** Least severe log message that the client wants; undefined for none, or where none are written. */
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
  checkVersion(getHeader(request, 'mcp-protocol-version'), meta[PROTOCOL_VERSION]);
  const capabilities = meta[CAPABILITIES];
  if (!isObject(capabilities)) return failMissing(CAPABILITIES, 'an object');
  checkHeader('Mcp-Method', getHeader(request, 'mcp-method'), method);
  const logLevel = meta[LOG_LEVEL];
  return {
    client: readCapabilities(capabilities),
    logLevel: offers.logging && isLogSeverity(logLevel) ? logLevel : undefined,
  };
}

function checkVersion(headerValue: string | undefined, claim: unknown): void {
  const claimed = typeof claim === 'string' ? claim : failMissing(PROTOCOL_VERSION, 'a string');
  if (headerValue !== undefined) checkHeader('MCP-Protocol-Version', headerValue, claimed);
  if (findEra(claimed) !== 'stateless') {
    fail('unsupported_version', {
      details: explainUnsupported(claimed),
      data: { supported: listSupportedFor(claimed), requested: claimed },
    });
  }
  checkHeader('MCP-Protocol-Version', headerValue, claimed);
}

/** A client that claims a revision with sessions but sends no initialize needs one without. */
const listSupportedFor = (claimed: string): readonly string[] =>
  findEra(claimed) === 'session'
    ? SUPPORTED_VERSIONS.filter((version) => findEra(version) === 'stateless')
    : SUPPORTED_VERSIONS;

const explainUnsupported = (claimed: string) =>
  findEra(claimed) === 'session'
    ? `Clients of ${claimed} begin with initialize, and send no version in _meta.`
    : `This service supports ${SUPPORTED_VERSIONS.join(', ')}.`;

const failMissing = (key: string, type: string): never =>
  fail('invalid_envelope', {
    details: `params._meta["${key}"] must be ${type}, in each request of 2026-07-28`,
  });
