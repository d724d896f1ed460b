// Tokens for tests: signed by a key that the gateway under test, and nobody else, takes for the provider's.
import { generateKeyPairSync, sign } from 'node:crypto';
import { parseKeySet } from '../auth/jwk.ts';
import type { KeySet } from '../auth/key-set.ts';
import { systemClock } from '../platform/clock.ts';

export interface TestLogin {
  readonly keySet: KeySet;
  /** A JWT with these claims, good for an hour. */
  issueToken(claims: Readonly<Record<string, unknown>>): string;
}

/** Names that nobody can register (RFC 2606 §2). */
export const ISSUER = 'https://provider.test';
export const AUDIENCE = 'https://gateway.test/mcp';

const HOUR_SECONDS = 3600;
const HEADER = { alg: 'ES256', kid: 'test', typ: 'JWT' };

export function createTestLogin(): TestLogin {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid: HEADER.kid, alg: HEADER.alg };
  const { usable: keys } = parseKeySet(Buffer.from(JSON.stringify({ keys: [jwk] })));

  return {
    keySet: {
      start() {},
      waitForKeys: async () => {},
      find: () => keys,
      findAfterRefresh: async () => keys,
      isFetched: true,
      describe: () => ({
        url: undefined,
        keys: [],
        fetchedAt: undefined,
        nextFetchAt: undefined,
        problem: undefined,
      }),
      close() {},
    },
    issueToken(claims) {
      const iat = Math.floor(systemClock.now() / 1000);
      const payload = { iss: ISSUER, aud: AUDIENCE, iat, exp: iat + HOUR_SECONDS, ...claims };
      const signed = `${encode(HEADER)}.${encode(payload)}`;
      const key = { key: privateKey, dsaEncoding: 'ieee-p1363' } as const;
      return `${signed}.${sign('sha256', Buffer.from(signed), key).toString('base64url')}`;
    },
  };
}

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
