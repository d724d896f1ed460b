import { parseObject } from '../../platform/json.ts';
import type { ClientCapabilities } from '../catalog/client-requests.ts';

/** What `initialize` stored; sessions from before it was stored declared nothing. */
export function readStoredCapabilities(clientCapabilities = '{}'): ClientCapabilities {
  const stored = parseObject(clientCapabilities) ?? {};
  return {
    elicitation: stored.elicitation === true,
    ...(stored.elicitationUrl === true && { elicitationUrl: true }),
    sampling: stored.sampling === true,
    roots: stored.roots === true,
  };
}
