// Decisions 3: GET /mcp without MCP_STREAMS. No stream is offered; clients probe here for the log-in.
import { fail } from '../../core/errors/gateway-error.ts';
import { type GatewayRequest, header, type Reply } from '../../core/message.ts';

/** `challenge` holds the WWW-Authenticate header; undefined when nobody has to log in. */
export const createNoStream = (challenge: Readonly<Record<string, string>> | undefined) =>
  function refuseStream(request: GatewayRequest): Reply {
    if (challenge !== undefined && header(request, 'authorization') === undefined) {
      fail('missing_token', { headers: challenge });
    }
    return fail('method_not_allowed', {
      details:
        'There is no event stream here (MCP_STREAMS): every answer is the reply to its POST.',
      headers: { Allow: 'POST, DELETE' },
    });
  };
