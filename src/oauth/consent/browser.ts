// The browser in which a login began: a cookie that only it has, of which only the hash is stored; and what it approved.
import type { ConsentConfig } from '../../config/groups/consent.ts';
import { generateSecret, hashSha256 } from '../../platform/ids.ts';
import { buildOAuthKey } from '../../store/keys.ts';
import type { KeyValue } from '../../store/store.ts';
import type { AuthorizationRequest } from '../request/authorization-request.ts';

export interface Browser {
  /** Stands in records for the cookie. */
  readonly hash: string;
  /** Headers that give a new browser its cookie, or let a known one keep it. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface Browsers {
  /** The browser of a Cookie header, or a new one. */
  getOrCreate(cookie: string | undefined): Browser;
  /** The hash of the cookie that was sent; undefined without one. */
  readHash(cookie: string | undefined): string | undefined;
}

/** `ttlSeconds` is how long approvals are remembered; the cookie has to outlive a login. */
export function createBrowsers(baseUrl: string, ttlSeconds: number): Browsers {
  const isSecure = /^https:/i.test(baseUrl);
  // With the prefix no other host below the same domain can set it (RFC 6265bis §4.1.3).
  const name = isSecure ? '__Host-postern' : 'postern';
  const maxAge = Math.max(ttlSeconds, 3600);
  const attributes = `Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`;
  const pattern = new RegExp(`(?:^|;)\\s*${name}=([A-Za-z0-9_-]{43})\\s*(?:;|$)`);

  const readSecret = (cookie: string | undefined) => pattern.exec(cookie ?? '')?.[1];
  return {
    getOrCreate(cookie) {
      const secret = readSecret(cookie) ?? generateSecret();
      return {
        hash: hashSha256(secret),
        headers: { 'Set-Cookie': `${name}=${secret}; ${attributes}` },
      };
    },
    readHash(cookie) {
      const secret = readSecret(cookie);
      return secret === undefined ? undefined : hashSha256(secret);
    },
  };
}

// What a browser approved before, so that it is not asked again.

export interface Approvals {
  /** Whether the browser approved this: whatever is new is asked anew. */
  isApproved(request: AuthorizationRequest, browserHash: string): Promise<boolean>;
  /** Whether it approved the client at this redirect URI, be it for other scopes. */
  isClientApproved(request: AuthorizationRequest, browserHash: string): Promise<boolean>;
  remember(request: AuthorizationRequest, browserHash: string): Promise<void>;
}

interface ApprovalsSettings extends Pick<ConsentConfig, 'ttlSeconds'> {
  /** The scopes that the provider will be asked for. */
  readonly listScopes: (scope: string | undefined) => readonly string[];
}

export function createApprovals(store: KeyValue, settings: ApprovalsSettings): Approvals {
  const { ttlSeconds, listScopes } = settings;

  const buildClientKey = ({ clientId, redirectUri }: AuthorizationRequest, browserHash: string) =>
    buildOAuthKey(
      'approved-client',
      hashSha256(JSON.stringify([browserHash, clientId, redirectUri])),
    );

  function buildApprovalKey(request: AuthorizationRequest, browserHash: string): string {
    const { clientId, redirectUri, parameters } = request;
    const scopes = [...new Set(listScopes(parameters.get('scope')))].sort();
    return buildOAuthKey(
      'approval',
      hashSha256(JSON.stringify([browserHash, clientId, redirectUri, scopes])),
    );
  }

  const isStored = async (key: string) => ttlSeconds > 0 && (await store.get(key)) !== undefined;

  return {
    isApproved: (request, browserHash) => isStored(buildApprovalKey(request, browserHash)),
    isClientApproved: (request, browserHash) => isStored(buildClientKey(request, browserHash)),
    async remember(request, browserHash) {
      if (ttlSeconds === 0) return;
      await Promise.all(
        [buildApprovalKey(request, browserHash), buildClientKey(request, browserHash)].map((key) =>
          store.set(key, '1', ttlSeconds),
        ),
      );
    },
  };
}
