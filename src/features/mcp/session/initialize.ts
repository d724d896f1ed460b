// §4.4: initialize, which makes a session.
import { fail } from '../../../core/errors/gateway-error.ts';
import { isObject, type JsonObject, parseObject } from '../../../core/json.ts';
import { type ClientCapabilities, readCapabilities } from '../catalog/client-requests.ts';
import { readParams } from '../protocol/json-rpc.ts';
import { negotiateVersion } from '../protocol/revisions.ts';
import type { NewSession } from './sessions.ts';

/**
 * The session that the params ask for.
 *
 * @throws GatewayError `invalid_params` naming the member.
 */
export function readInitialize(params: unknown): NewSession {
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
