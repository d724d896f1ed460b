import { decodeJwt } from 'jose';
import { readEmail } from '../../../src/http/endpoint/message.ts';
import type { UpstreamCaller } from '../../../src/mcp/upstream/upstream.ts';
import type { ServerAccess } from '../../../src/servers/credentials/credential-type.ts';

/** A caller as `/mcp` would make it of a token. */
export function callerOf(token: string, clientId?: string): UpstreamCaller {
  const claims = decodeJwt(token);
  const { sub = '', groups } = claims;
  return {
    user: {
      sub,
      claims,
      token,
      ...readEmail(claims),
      ...(Array.isArray(groups) && { groups: groups.map(String) }),
    },
    clientId,
    sessionId: undefined,
    capabilities: { elicitation: false, sampling: false, roots: false },
  };
}

/** The headers of an `auth` that sends a token. */
export function requireHeaders({ getHeaders }: ServerAccess) {
  if (getHeaders === undefined) throw new Error('It sends no token.');
  return getHeaders;
}
