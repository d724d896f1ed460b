// Decisions 3: a later request names the version of its session, or none.
import { fail } from '../../../core/errors/gateway-error.ts';
import { type GatewayRequest, header } from '../../../core/message.ts';
import { SESSION_VERSIONS } from './revisions.ts';

/** @throws GatewayError `unsupported_protocol_version`. */
export function checkVersionHeader(request: GatewayRequest): void {
  const version = header(request, 'mcp-protocol-version');
  if (version === undefined || SESSION_VERSIONS.includes(version)) return;
  fail('unsupported_protocol_version', {
    details: `MCP-Protocol-Version must be one of ${SESSION_VERSIONS.join(', ')}, or 2026-07-28 with the same in params._meta.`,
  });
}
