// §5.11: writes and reads the gateway's own tokens: opaque to their holders, and read here without the store.

import { createCipheriv, createDecipheriv, createHmac } from 'node:crypto';
import {
  ACCESS_TOKEN_PREFIX,
  isOwnToken,
  REFRESH_TOKEN_PREFIX,
} from '../../http/endpoint/bearer.ts';
import { createBoundedMap } from '../../platform/bounded-map.ts';
import { hashSha256 } from '../../platform/ids.ts';
import { createSeal, type Seal } from '../../store/seal/seal.ts';
import type { UserIdentity } from './grant.ts';

/** Content of an access token. Client, scopes and claims are in the grant. */
export interface AccessToken {
  readonly grantId: string;
  /** The result of `hashUser`. */
  readonly userKey: string;
  readonly generation: number;
  /** Epoch seconds. */
  readonly issuedAt: number;
  /** Epoch seconds. */
  readonly expiresAt: number;
  /** Which of the grant's scopes it has: the result of `maskScopes`. */
  readonly scopeMask: number;
  /** The results of `hashResource`. */
  readonly resourceHashes: readonly string[];
}

export interface RefreshToken {
  readonly grantId: string;
  readonly generation: number;
}

/** In bytes. Longer tokens are refused at once. */
export const MAX_TOKEN_LENGTH = 512;
/** The maximum that fits, with some reserve. */
export const MAX_TOKEN_RESOURCES = 16;

const GRANT_BYTES = 16;
const USER_BYTES = 16;
const RESOURCE_BYTES = 8;
/** Grant and user; generation, issue, expiry and scopes with 4 bytes each. */
const ACCESS_BYTES = GRANT_BYTES + USER_BYTES + 16;
const REFRESH_BYTES = GRANT_BYTES + 4;

/** `baseUrl` is `BASE_URL`: a gateway at a different address reads none of these tokens, even with the same secret. */
export function createTokenCodec(seal: Seal, baseUrl: string) {
  const access = createTokenSeal(seal, 'postern access token', baseUrl);
  const refresh = createTokenSeal(seal, 'postern refresh token', baseUrl);
  const openedRefreshTokens = createBoundedMap<string, RefreshToken>('openedRefreshTokens');

  return {
    /** Deterministic, so that a response can be repeated without being stored. */
    writeAccessToken(content: AccessToken): string {
      const { grantId, userKey, generation, issuedAt, expiresAt } = content;
      const { scopeMask, resourceHashes } = content;
      const bytes = Buffer.alloc(ACCESS_BYTES + RESOURCE_BYTES * resourceHashes.length);
      bytes.write(grantId, 0, 'base64url');
      bytes.write(userKey, GRANT_BYTES, 'base64url');
      let at = GRANT_BYTES + USER_BYTES;
      for (const number of [generation, issuedAt, expiresAt, scopeMask])
        at = bytes.writeUInt32BE(number, at);
      for (const hash of resourceHashes) at += bytes.write(hash, at, 'latin1');
      return ACCESS_TOKEN_PREFIX + access.seal(bytes);
    },
    /** Undefined unless it was created with one of the secrets, for this gateway. Times are not checked. */
    readAccessToken(text: string): AccessToken | undefined {
      if (!text.startsWith(ACCESS_TOKEN_PREFIX)) return undefined;
      const bytes = access.open(text.slice(ACCESS_TOKEN_PREFIX.length));
      if (bytes === undefined || bytes.length < ACCESS_BYTES) return undefined;
      const times = GRANT_BYTES + USER_BYTES;
      const resourceHashes: string[] = [];
      for (let at = ACCESS_BYTES; at < bytes.length; at += RESOURCE_BYTES) {
        resourceHashes.push(bytes.toString('latin1', at, at + RESOURCE_BYTES));
      }
      return {
        grantId: bytes.toString('base64url', 0, GRANT_BYTES),
        userKey: bytes.toString('base64url', GRANT_BYTES, times),
        generation: bytes.readUInt32BE(times),
        issuedAt: bytes.readUInt32BE(times + 4),
        expiresAt: bytes.readUInt32BE(times + 8),
        scopeMask: bytes.readUInt32BE(times + 12),
        resourceHashes,
      };
    },
    writeRefreshToken({ grantId, generation }: RefreshToken) {
      const bytes = Buffer.alloc(REFRESH_BYTES);
      bytes.write(grantId, 0, 'base64url');
      bytes.writeUInt32BE(generation, GRANT_BYTES);
      return REFRESH_TOKEN_PREFIX + refresh.seal(bytes);
    },
    readRefreshToken(text: string): RefreshToken | undefined {
      const known = openedRefreshTokens.get(text);
      if (known !== undefined || !text.startsWith(REFRESH_TOKEN_PREFIX)) return known;
      const bytes = refresh.open(text.slice(REFRESH_TOKEN_PREFIX.length));
      // Invalid tokens are not cached: anybody could send more of them.
      if (bytes?.length !== REFRESH_BYTES) return undefined;
      const grantId = bytes.toString('base64url', 0, GRANT_BYTES);
      const opened = { grantId, generation: bytes.readUInt32BE(GRANT_BYTES) };
      openedRefreshTokens.set(text, opened);
      return opened;
    },
  };
}

/** 16 bytes, base64url: distinguishes users without naming them. */
export const hashUser = ({ issuer, sub }: UserIdentity): string =>
  Buffer.from(hashSha256(JSON.stringify([issuer, sub])), 'base64url')
    .subarray(0, USER_BYTES)
    .toString('base64url');

/** The same for a session at the provider. */
export const hashSid = ({ issuer, sid }: { readonly issuer: string; readonly sid: string }) =>
  hashUser({ issuer, sub: sid });

/** 8 bytes, one per character. */
export const hashResource = (resource: string): string =>
  Buffer.from(hashSha256(resource), 'base64url').toString('latin1', 0, RESOURCE_BYTES);

// AES-256-GCM, prefixed with the ID of the key. The IV is derived from the content: equal IVs mean equal content, and so the same
// token.

const ALGORITHM = 'aes-256-gcm';
const ID_BYTES = 6;
const IV_BYTES = 12;
const TAG_BYTES = 16;

function createTokenSeal({ deriveKeys }: Seal, purpose: string, baseUrl: string) {
  const keys = deriveKeys(purpose);
  const [ivKey] = deriveKeys(`${purpose} iv`);
  const context = Buffer.from(baseUrl);
  const byId = new Map(keys.map((key) => [key.id.toString('latin1'), key]));
  const [first] = keys;
  if (first === undefined || ivKey === undefined) throw new Error('Tokens need a secret');

  return {
    seal(content: Buffer): string {
      const iv = createHmac('sha256', ivKey.bytes)
        .update(context)
        .update(content)
        .digest()
        .subarray(0, IV_BYTES);
      const cipher = createCipheriv(ALGORITHM, first.bytes, iv).setAAD(context);
      const sealed = [cipher.update(content), cipher.final()];
      return Buffer.concat([first.id, iv, ...sealed, cipher.getAuthTag()]).toString('base64url');
    },
    open(text: string): Buffer | undefined {
      const bytes = Buffer.from(text, 'base64url');
      const end = bytes.length - TAG_BYTES;
      if (end < ID_BYTES + IV_BYTES) return undefined;
      const key = byId.get(bytes.toString('latin1', 0, ID_BYTES));
      // Decoders accept several spellings of the same bytes: a revoked token must have no other.
      if (key === undefined || bytes.toString('base64url') !== text) return undefined;
      const iv = bytes.subarray(ID_BYTES, ID_BYTES + IV_BYTES);
      try {
        const decipher = createDecipheriv(ALGORITHM, key.bytes, iv, { authTagLength: TAG_BYTES });
        decipher.setAAD(context).setAuthTag(bytes.subarray(end));
        const content = decipher.update(bytes.subarray(ID_BYTES + IV_BYTES, end));
        decipher.final();
        return content;
      } catch {
        return undefined;
      }
    },
  };
}

// A token may have fewer scopes than its grant: a mask with one bit for each of the grant's scopes.

/** The size of the mask; a grant has no more scopes. */
export const MAX_SCOPES = 32;

export function maskScopes(granted: readonly string[], scopes: readonly string[]): number {
  let mask = 0;
  for (const [bit, scope] of granted.entries()) if (scopes.includes(scope)) mask += 2 ** bit;
  return mask;
}

export const unmaskScopes = (granted: readonly string[], mask: number): readonly string[] =>
  granted.filter((_, bit) => Math.floor(mask / 2 ** bit) % 2 === 1);

// Describes a token to operators who have the secret. Never decides on access.

type OwnTokenFacts =
  /** Not a token of a Postern gateway. */
  | { readonly kind: 'foreign' }
  | { readonly kind: 'refresh' }
  /** Without the secret, no more can be read. */
  | { readonly kind: 'sealed' }
  /** Created with a different secret, or for a different gateway. */
  | { readonly kind: 'unknown' }
  /** `expiresAt` in epoch seconds. */
  | { readonly kind: 'access'; readonly grantId: string; readonly expiresAt: number };

/** `secrets` and `baseUrl` are OAUTH_STATE_SECRET and BASE_URL, if known. */
export function inspectOwnToken(
  token: string,
  secrets?: readonly string[],
  baseUrl?: string,
): OwnTokenFacts {
  if (!isOwnToken(token)) return { kind: 'foreign' };
  if (token.startsWith(REFRESH_TOKEN_PREFIX)) return { kind: 'refresh' };
  if (secrets === undefined || baseUrl === undefined) return { kind: 'sealed' };
  const opened = createTokenCodec(createSeal(secrets), baseUrl).readAccessToken(token);
  if (opened === undefined) return { kind: 'unknown' };
  return { kind: 'access', grantId: opened.grantId, expiresAt: opened.expiresAt };
}
