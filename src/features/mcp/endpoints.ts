// Spec §4.1, §4.4, §4.5: the endpoints of /mcp.
import type {
  Endpoint,
  OpenEndpoint,
  ProtectedCall,
  ProtectedEndpoint,
} from '../../core/endpoint.ts';
import { fail } from '../../core/errors/gateway-error.ts';
import { JSONRPC } from '../../core/errors/render.ts';
import { isSessionId } from '../../core/ids.ts';
import { type GatewayRequest, header, jsonValueOf } from '../../core/message.ts';
import type { McpEndpoint } from './endpoint.ts';
import type { McpCall } from './era-handler.ts';

/** Headers of a 401; undefined when nobody has to log in. */
type Challenge = Readonly<Record<string, string>> | undefined;

export function createMcpEndpoints(mcp: McpEndpoint, challenge: Challenge): readonly Endpoint[] {
  const { get: openStream } = mcp;
  return [
    protectedEndpoint({
      method: 'POST',
      body: 'json',
      handle: (call) => mcp.post(toMcpCall(call), jsonValueOf(call.body)),
    }),
    protectedEndpoint({ method: 'DELETE', handle: (call) => mcp.delete(toMcpCall(call)) }),
    openStream === undefined
      ? noStreamEndpoint(challenge)
      : protectedEndpoint({ method: 'GET', handle: (call) => openStream(toMcpCall(call)) }),
  ];
}

const MCP = { path: '/mcp', errors: JSONRPC } as const;

const protectedEndpoint = (
  row: Pick<ProtectedEndpoint, 'method' | 'body' | 'handle'>,
): ProtectedEndpoint => ({ ...MCP, kind: 'protected', limit: 'mcp', sessionIdOf, ...row });

const namedSessionOf = (request: GatewayRequest) => header(request, 'mcp-session-id');

/** Nothing that cannot be a session id reaches the store. */
function sessionIdOf(request: GatewayRequest): string | undefined {
  const sessionId = namedSessionOf(request);
  return sessionId !== undefined && isSessionId(sessionId) ? sessionId : undefined;
}

const toMcpCall = ({ request, user, session, body }: ProtectedCall): McpCall => ({
  request,
  user,
  session,
  sessionId: namedSessionOf(request),
  hold: body.hold,
});

/** GET without MCP_STREAMS. No stream is offered; clients probe here for the login. */
const noStreamEndpoint = (challenge: Challenge): OpenEndpoint => ({
  ...MCP,
  kind: 'open',
  method: 'GET',
  isUnlisted: true,
  handle(request) {
    if (challenge !== undefined && header(request, 'authorization') === undefined) {
      fail('missing_token', { headers: challenge });
    }
    return fail('method_not_allowed', {
      details:
        'There is no event stream here (MCP_STREAMS): every answer is the reply to its POST.',
      headers: { Allow: 'POST, DELETE' },
    });
  },
});
