// The browser where a login began: its cookie, stored only as a hash, and its approvals.

import type { Browsers } from '../../http/endpoint/own-pages.ts';
import { generateSecret, hashSha256 } from '../../platform/ids.ts';
import { type JsonObject, parseObject } from '../../platform/json.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { buildOAuthKey } from '../../store/keys.ts';
import type { Logouts } from '../broker/logouts.ts';
import type { UserIdentity } from '../grants/grant.ts';
import { hashUser } from '../grants/token-codec.ts';
import type { AuthorizationRequest } from '../request/authorization-request.ts';

/** `ttlSeconds` is the lifetime of approvals; the cookie must outlive a login. */
export function createBrowsers(baseUrl: string, ttlSeconds: number): Browsers {
  const isSecure = /^https:/i.test(baseUrl);
  // The prefix keeps other hosts of the domain from setting the cookie (RFC 6265bis §4.1.3).
  const name = isSecure ? '__Host-postern' : 'postern';
  const maxAge = Math.max(ttlSeconds, 3600);
  const attributes = `Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`;
  const readSecret = createReadSecret(name);
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
      return secret && hashSha256(secret);
    },
  };
}

/** Reads the secret from the cookie of this name in a Cookie header; undefined without one. */
export function createReadSecret(name: string): (cookie: string | undefined) => string | undefined {
  const pattern = new RegExp(`(?:^|;)\\s*${name}=([A-Za-z0-9_-]{43})\\s*(?:;|$)`);
  return (cookie = '') => pattern.exec(cookie)?.[1];
}

// Approvals of a browser, so that it is not asked again: for the user who logged in then, until that user or an operator logs them
// out.

/** Stored in the record of the login that relies on it. */
export interface Approval {
  /** Keys of the store: for the client at its redirect URI with these scopes, and with any. */
  readonly keys: readonly [asked: string, client: string];
  /** The user approved just now. */
  readonly isNew: boolean;
}

/**
 * `listShownScopes` returns the scopes that the client is granted, as the consent page shows them. `logouts` is undefined in proxy
 * mode: there the gateway does not know any users, and does not log anyone out.
 */
export function createApprovals(
  { config, store }: Runtime,
  listShownScopes: (scope: string | undefined) => readonly string[],
  logouts: Logouts | undefined,
) {
  const { ttlSeconds } = config.oauth.consent;

  function buildKeys(request: AuthorizationRequest, browserHash: string): Approval['keys'] {
    const { clientId, redirectUri, parameters } = request;
    const scopes = [...new Set(listShownScopes(parameters.get('scope')))].sort();
    const client = [browserHash, clientId, redirectUri];
    return [
      buildOAuthKey('approval', hashSha256(JSON.stringify([...client, scopes]))),
      buildOAuthKey('approved-client', hashSha256(JSON.stringify(client))),
    ];
  }

  /** With a `userKey`, true only for an approval by that user. */
  async function stands(key: string, clientId: string, userKey?: string) {
    const text = ttlSeconds > 0 ? await store.get(key) : undefined;
    if (text === undefined || logouts === undefined) return text !== undefined;
    const { user, logoutMark } = parseObject(text) ?? {};
    if (typeof user !== 'string' || typeof logoutMark !== 'number') return false;
    if (userKey !== undefined && userKey !== user) return false;
    return !(await logouts.isApprovalOver(user, clientId, logoutMark));
  }

  async function remember({ keys }: Approval, led: JsonObject) {
    if (ttlSeconds === 0) return;
    await Promise.all(keys.map((key) => store.set(key, JSON.stringify(led), ttlSeconds)));
  }

  return {
    /** Undefined if the user must be asked, as they are for any new request. */
    async find(request: AuthorizationRequest, browserHash: string): Promise<Approval | undefined> {
      const keys = buildKeys(request, browserHash);
      return (await stands(keys[0], request.clientId)) ? { keys, isNew: false } : undefined;
    },
    /** True if the browser approved the client at this redirect URI, for whatever scopes. */
    isClientApproved: (request: AuthorizationRequest, browserHash: string) =>
      stands(buildKeys(request, browserHash)[1], request.clientId),
    /** Counts for this login. Proxy mode stores it at once; broker mode at the callback (`confirm`), once the user is known. */
    async create(request: AuthorizationRequest, browserHash: string): Promise<Approval> {
      const approval = { keys: buildKeys(request, browserHash), isNew: true };
      if (logouts === undefined) await remember(approval, {});
      return approval;
    },
    /**
     * False if another user gave the approval, or it has expired: it is deleted, and the user must be asked. `logoutMark` is the
     * mark of when this login began.
     */
    async confirm(approval: Approval, user: UserIdentity, clientId: string, logoutMark: number) {
      const { keys, isNew } = approval;
      const userKey = hashUser(user);
      if (isNew) {
        await remember(approval, { user: userKey, logoutMark });
        return true;
      }
      if (await stands(keys[0], clientId, userKey)) return true;
      await Promise.all(keys.map((key) => store.delete(key)));
      return false;
    },
  };
}
