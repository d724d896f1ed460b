// §5.6, RFC 6750 §3: challenges to clients without a valid token, and the prefixes of the gateway's own tokens.

import type { Config } from '../../config/config.ts';
import { GatewayError } from '../../errors/gateway-error.ts';
import { isStringArray } from '../../platform/json.ts';
import type { GatewayRequest, UserContext } from './message.ts';

/** Headers of a 401. */
type Challenge = Readonly<Record<'WWW-Authenticate', string>>;

/** Verifies the token of a call at `path`. */
export type VerifyBearer = (
  token: string,
  beforeFetch: (() => Promise<void>) | undefined,
  path: string,
) => UserContext | Promise<UserContext>;

/** Called with each 401. */
export type OnRefusal = (error: GatewayError, request: AuthRequest) => void;

/** The part of a request that its token check needs. */
export type AuthRequest = Pick<GatewayRequest, 'headers' | 'path' | 'clientIp'>;

/** Returns the headers of a 401 at the path of a request. */
export type GetChallenge = (path: string) => Challenge;

/**
 * §5.6, RFC 9728 §5.1: points clients to the protected resource metadata. In broker mode, to the document whose `resource`
 * is the called URL: some clients compare them (RFC 9728 §3.3).
 */
export function createChallenge(
  baseUrl: string,
  mode: Config['oauth']['mode'],
  isServer: (name: string) => boolean = () => false,
): GetChallenge {
  const nameDocument = (path: string): Challenge => ({
    'WWW-Authenticate': `Bearer resource_metadata="${baseUrl}/.well-known/oauth-protected-resource${path}"`,
  });
  const common = nameDocument(mode === 'broker' ? '/mcp' : '');
  return function getChallenge(path) {
    // §18.2: the document of the server that was called.
    const isServerPath = path.startsWith(SERVERS) && isServer(path.slice(SERVERS.length));
    return mode === 'broker' && isServerPath ? nameDocument(path) : common;
  };
}

const SERVERS = '/mcp/';

/** Adds the challenge to a 401, or to an error that asks for scopes. Idempotent. */
export function addChallenge(error: GatewayError, challenge: Challenge | undefined): GatewayError {
  const parameters = describeRefusal(error);
  if (parameters === undefined && error.row.status !== 401) return error;
  const metadata = challenge?.['WWW-Authenticate'].replace(/^Bearer /, ', ') ?? '';
  const headers =
    parameters === undefined
      ? challenge
      : { 'WWW-Authenticate': `Bearer ${parameters}${metadata}` };
  return new GatewayError(error.key, { ...error.failure, ...(headers && { headers }) });
}

/** RFC 6750 §3.1: has the client request the scopes, or drop its tokens and log in, and retry. */
function describeRefusal({ key, failure }: GatewayError) {
  if (key === 'token_revoked') return 'error="invalid_token"';
  if (key !== 'insufficient_scope') return undefined;
  const { scopes } = failure.data ?? {};
  return `error="insufficient_scope"${isStringArray(scopes) ? `, scope="${scopes.join(' ')}"` : ''}`;
}

// §5.11: prefixes of the gateway's own tokens, which let scanners find leaked secrets.

export const ACCESS_TOKEN_PREFIX = 'pst_';
export const REFRESH_TOKEN_PREFIX = 'psr_';

/** Returns true if a string has the form of the gateway's own tokens, valid or not. */
export const isOwnToken = (text: string): boolean =>
  text.startsWith(ACCESS_TOKEN_PREFIX) || text.startsWith(REFRESH_TOKEN_PREFIX);
