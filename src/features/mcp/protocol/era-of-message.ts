// MCP 2026-07-28 "Versioning": the body decides which era a message is of.
import { type GatewayRequest, header } from '../../../core/message.ts';
import { type Message, metaOf } from './json-rpc.ts';
import { type Era, eraOf } from './revisions.ts';

/** The member of `params._meta` by which a message claims its revision. */
export const PROTOCOL_VERSION = 'io.modelcontextprotocol/protocolVersion';

/** A claim, of whatever version, is the stateless era's; without one the header says. */
export function eraOfMessage(message: Message, request: GatewayRequest): Era {
  if (message.kind !== 'response' && PROTOCOL_VERSION in metaOf(message.params)) return 'stateless';
  const version = header(request, 'mcp-protocol-version');
  return (version === undefined ? undefined : eraOf(version)) ?? 'session';
}
