// §4.4: initialize, which makes a session.
import { fail } from '../../../core/errors/gateway-error.ts';
import { isObject, type JsonObject, parseObject } from '../../../core/json.ts';
import type { UserContext } from '../../../core/user-context.ts';
import { listCapabilities } from '../calls/methods.ts';
import type { Catalog, ServiceInfo } from '../catalog/catalog.ts';
import { type ClientCapabilities, readCapabilities } from '../catalog/client-requests.ts';
import { readParams } from '../protocol/json-rpc.ts';
import { type McpResponse, toResultResponse } from '../protocol/response.ts';
import { negotiateVersion } from '../protocol/revisions.ts';
import type { SessionStreams } from './session-streams.ts';
import type { NewSession, Sessions } from './sessions.ts';

export interface InitializeDeps {
  readonly catalog: Catalog;
  readonly sessions: Sessions;
  /** Undefined without `MCP_STREAMS`. */
  readonly sessionStreams: SessionStreams | undefined;
  readonly service: ServiceInfo;
}

/** @throws GatewayError `invalid_params` naming the member. */
export type Initialize = (user: UserContext | undefined, params: unknown) => Promise<McpResponse>;

export const createInitialize = ({
  catalog,
  sessions,
  sessionStreams,
  service: { name, version },
}: InitializeDeps): Initialize =>
  async function initialize(user, params) {
    const session = readInitialize(params);
    const { sessionId, endedIds } = await sessions.create(user, session);
    // As after DELETE; nobody waits for it, and it never rejects.
    for (const endedId of endedIds) void sessionStreams?.end(endedId);
    const response = toResultResponse({
      protocolVersion: session.protocolVersion,
      capabilities: listCapabilities(catalog, sessionStreams !== undefined),
      serverInfo: { name, version },
      ...(catalog.instructions !== undefined && { instructions: catalog.instructions }),
    });
    return { ...response, sessionId, expiresAt: sessions.getExpiry() };
  };

/** The session that the params ask for. */
function readInitialize(params: unknown): NewSession {
  const { protocolVersion, capabilities, clientInfo } = readParams(params);
  if (typeof protocolVersion !== 'string') {
    fail('invalid_params', { details: 'params.protocolVersion must be a string' });
  }
  if (!isObject(capabilities)) {
    fail('invalid_params', { details: 'params.capabilities must be an object' });
  }
  return {
    protocolVersion: negotiateVersion(protocolVersion),
    clientCapabilities: JSON.stringify(readCapabilities(capabilities)),
    ...(isObject(clientInfo) && { clientInfo: JSON.stringify(pickNameAndVersion(clientInfo)) }),
  };
}

/** What `initialize` stored; sessions from before it was stored declared nothing. */
export function readStoredCapabilities(clientCapabilities = '{}'): ClientCapabilities {
  const stored = parseObject(clientCapabilities) ?? {};
  return {
    elicitation: stored.elicitation === true,
    sampling: stored.sampling === true,
    roots: stored.roots === true,
  };
}

// Only what §4.4 names, and short: a caller must not fill the store with what it likes.
const pickNameAndVersion = ({ name, version }: JsonObject) => ({
  ...(typeof name === 'string' && { name: name.slice(0, 200) }),
  ...(typeof version === 'string' && { version: version.slice(0, 200) }),
});
