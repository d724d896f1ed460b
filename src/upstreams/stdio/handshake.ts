// §18.3: which era a process speaks, and what it says of itself.

import type { ClientCapabilities } from '../../mcp/catalog/client-requests.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { Era } from '../../protocol/revisions.ts';
import type { UpstreamConfig } from '../config/upstream-config.ts';
import {
  NO_SESSIONS,
  NOT_STATELESS,
  readDiscoverResult,
  readInitializeResult,
} from '../messages/description.ts';
import {
  CLIENT_INFO,
  declareCapabilities,
  SESSION_VERSION,
  toStatelessParams,
} from '../messages/envelope.ts';
import { GATEWAY_CALLER, type UpstreamDescription, UpstreamError } from '../upstream.ts';
import type { RpcConnection } from './rpc-connection.ts';

/** Sent first: servers of the session era may ignore `server/discover`, or even end by it. */
export type FirstRequest = 'server/discover' | 'initialize';

/** Milliseconds for `server/discover`: a server that does not know it may leave it unanswered. */
const DISCOVER_MS = 10_000;
/** Milliseconds for `initialize`: a first `npx` downloads the server. */
const INITIALIZE_MS = 120_000;

/** @throws UpstreamError */
export async function shakeHands(
  connection: RpcConnection,
  first: FirstRequest,
  capabilities: ClientCapabilities,
  demanded: UpstreamConfig['era'],
): Promise<UpstreamDescription> {
  if (demanded !== 'auto') return shakeHandsIn(demanded, connection, capabilities);
  if (first === 'server/discover') {
    return (await discover(connection)) ?? initialize(connection, capabilities);
  }
  try {
    return await initialize(connection, capabilities);
  } catch (error) {
    // A newer version of the server may have come, which has no sessions any more.
    const description = isRefusal(error) ? await discover(connection) : undefined;
    if (description === undefined) throw error;
    return description;
  }
}

async function shakeHandsIn(
  era: Era,
  connection: RpcConnection,
  capabilities: ClientCapabilities,
): Promise<UpstreamDescription> {
  if (era === 'session') {
    return initialize(connection, capabilities).catch((error: unknown) => {
      throw isRefusal(error) ? new UpstreamError('invalid', NO_SESSIONS) : error;
    });
  }
  const description = await discover(connection);
  if (description === undefined) throw new UpstreamError('invalid', NOT_STATELESS);
  return description;
}

const isRefusal = (error: unknown): boolean =>
  error instanceof UpstreamError && error.failure === 'error';

/** Undefined where the server does not speak 2026-07-28. @throws UpstreamError when it has ended. */
async function discover(connection: RpcConnection): Promise<UpstreamDescription | undefined> {
  const request = { params: {}, trace: {}, logLevel: undefined };
  const params = toStatelessParams(request, 0, GATEWAY_CALLER.capabilities);
  let result: JsonObject;
  try {
    result = await connection.ask('server/discover', params, DISCOVER_MS);
  } catch (error) {
    if (error instanceof UpstreamError && error.failure === 'unavailable') throw error;
    return undefined;
  }
  return readDiscoverResult(result);
}

async function initialize(
  connection: RpcConnection,
  capabilities: ClientCapabilities,
): Promise<UpstreamDescription> {
  const params = {
    protocolVersion: SESSION_VERSION,
    capabilities: declareCapabilities(capabilities),
    clientInfo: CLIENT_INFO,
  };
  const result = await connection.ask('initialize', params, INITIALIZE_MS);
  const description = readInitializeResult(result);
  if (description === undefined) {
    throw new UpstreamError('invalid', 'it speaks no revision of MCP that the gateway knows');
  }
  connection.notify('notifications/initialized', {});
  return description;
}
