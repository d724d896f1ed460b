// §7.1 for tokens of the gateway's own: whatever is wrong with one is a 401 with its reason.
import { expect, test } from 'vitest';
import {
  createTokenCodec,
  hashResource,
  hashUser,
} from '../../../src/logins/grants/token-codec.ts';
import { createSeal } from '../../../src/store/seal/seal.ts';
import { useShared } from '../../support/lifetimes.ts';
import { BASE, MCP, startOwnTokens, type Tokens } from '../../support/oauth/own-tokens.ts';

const own = useShared(() =>
  startOwnTokens({ env: { OAUTH_STATE_SECRET: 'a secret of at least 32 bytes: ours' } }),
);

/** A token as a gateway would write it that has this secret, at this address. */
const writeToken = (secret: string, baseUrl = BASE, kind: 'access' | 'refresh' = 'access') => {
  const codec = createTokenCodec(createSeal([secret]), baseUrl);
  const grantId = Buffer.alloc(16, 7).toString('base64url');
  const now = Math.floor(own.clock.now() / 1000);
  return kind === 'refresh'
    ? codec.writeRefreshToken({ grantId, generation: 1 })
    : codec.writeAccessToken({
        grantId,
        userKey: hashUser({ issuer: own.provider.issuer.url, sub: 'user-1' }),
        generation: 1,
        issuedAt: now,
        expiresAt: now + 3600,
        scopeMask: 1,
        resourceHashes: [hashResource(MCP)],
      });
};

const OURS = 'a secret of at least 32 bytes: ours';

const flipBit = (token: string, at: number): string => {
  const bytes = Buffer.from(token.slice(4), 'base64url');
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  return `pst_${bytes.toString('base64url')}`;
};

test.each<{ what: string; make: (tokens: Tokens) => string; reason: string }>([
  { what: 'cut', make: ({ access }) => access.slice(0, -1), reason: 'invalid_token' },
  { what: 'empty', make: () => 'pst_', reason: 'invalid_token' },
  { what: 'with more behind it', make: ({ access }) => `${access}A`, reason: 'invalid_token' },
  { what: 'padded', make: ({ access }) => `${access}=`, reason: 'invalid_token' },
  {
    what: 'by another secret',
    make: () => writeToken('another secret of at least 32 bytes!'),
    reason: 'invalid_token',
  },
  {
    what: 'of another gateway with the same secret',
    make: () => writeToken(OURS, 'https://other.example'),
    reason: 'invalid_token',
  },
  { what: 'a refresh token', make: ({ refresh }) => refresh, reason: 'invalid_token' },
  {
    what: 'a refresh token under the name of an access token',
    make: ({ refresh }) => refresh.replace('psr_', 'pst_'),
    reason: 'invalid_token',
  },
  {
    what: 'over 512 bytes',
    make: ({ access }) => access + 'A'.repeat(512),
    reason: 'invalid_token',
  },
  {
    what: 'with a flipped bit in the key id',
    make: ({ access }) => flipBit(access, 0),
    reason: 'invalid_token',
  },
  {
    what: 'with a flipped bit in the IV',
    make: ({ access }) => flipBit(access, 8),
    reason: 'invalid_token',
  },
  {
    what: 'with a flipped bit in the grant',
    make: ({ access }) => flipBit(access, 20),
    reason: 'invalid_token',
  },
  {
    what: 'with a flipped bit in the expiry',
    make: ({ access }) => flipBit(access, 60),
    reason: 'invalid_token',
  },
  {
    what: 'with a flipped bit in the tag',
    make: ({ access }) => flipBit(access, 88),
    reason: 'invalid_token',
  },
  {
    what: 'of a grant that there never was',
    make: () => writeToken(OURS),
    reason: 'token_revoked',
  },
])('§5.11, §7.1 a token that is $what: 401 $reason', async ({ make, reason }) => {
  const { status, json, headers } = await own.call(make(await own.logIn()));
  expect([status, json.error.code, json.error.data.reason]).toEqual([401, -32001, reason]);
  expect(headers['www-authenticate']).toContain('resource_metadata=');
});

test('§5.11, §7.1 a JWT of the provider is no token of this gateway, and the refusal says what is', async () => {
  const { status, json } = await own.call(await own.provider.issuer.sign({ aud: MCP }));
  expect([status, json.error.data.reason]).toEqual([401, 'invalid_token']);
  expect(json.error.data.details).toContain('pst_');
});

test('§5.11, §7.1 an expired token: 401 expired_token', async () => {
  const { access } = await own.logIn();
  own.clock.advance(3_600_000);
  const { status, json } = await own.call(access);
  expect([status, json.error.data.reason]).toEqual([401, 'expired_token']);
});

test('§5.11 every single flipped bit is found', async () => {
  const { access } = await own.logIn();
  const bytes = Buffer.from(access.slice(4), 'base64url').length;
  const answers = await Promise.all(
    Array.from({ length: bytes }, (_, at) => own.call(flipBit(access, at))),
  );
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401]));
});

test.each([
  { resource: MCP, path: '/mcp', status: 200 },
  { resource: BASE, path: '/mcp', status: 200 },
  { resource: `${BASE}/`, path: '/mcp', status: 200 },
  { resource: `${MCP}/`, path: '/mcp', status: 200 },
  { resource: `${MCP}/`, path: '/mcp/', status: 200 },
])(
  '§5.11, RFC 8707 a token for $resource at $path: $status',
  async ({ resource, path, status }) => {
    const { access } = await own.logIn({}, { resource });
    expect((await own.call(access, path)).status).toBe(status);
  },
);
