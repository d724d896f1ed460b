// §14: the built service in a network that only a proxy leads out of.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { endPosterns, makeFolder, startPostern } from '../support/gateway/process.ts';
import { useFresh } from '../support/lifetimes.ts';
import { startDocumentHost } from '../support/oauth/document-host.ts';
import { ACCEPT_PROVIDER_TOKENS } from '../support/oauth/issuer.ts';
import { startProxy } from '../support/oauth/proxy.ts';

const ISSUER = 'https://id.example';
const SLOW = { timeout: 60_000 } as const;

const host = useFresh(() => startDocumentHost({ names: ['id.example', 'client.example'] }));
const proxy = useFresh(() => startProxy(['someone', 'hunter2']));
let authority: string;

beforeEach(async () => {
  authority = join(await makeFolder(), 'authority.pem');
  await writeFile(authority, host.network.ca ?? '');
});
afterEach(endPosterns);

/** The provider, and everything that it says. */
async function startProvider() {
  const { publicKey, privateKey } = await generateKeyPair('RS256');
  const jwk = { ...(await exportJWK(publicKey)), kid: 'a', alg: 'RS256', use: 'sig' };
  const answers: Readonly<Record<string, object>> = {
    '/.well-known/openid-configuration': {
      issuer: ISSUER,
      jwks_uri: `${ISSUER}/jwks`,
      authorization_endpoint: `${ISSUER}/authorize`,
      token_endpoint: `${ISSUER}/token`,
    },
    '/jwks': { keys: [jwk] },
  };
  host.answer((res, path) => {
    res.setHeader('Content-Type', 'application/json').end(JSON.stringify(answers[path] ?? {}));
  });
  return (audience: string) =>
    new SignJWT({ iss: ISSUER, aud: audience, sub: 'user', exp: Date.now() / 1000 + 3600 })
      .setProtectedHeader({ alg: 'RS256', kid: 'a' })
      .sign(privateKey);
}

const env = () => ({
  BASE_URL: 'http://localhost:3000',
  OAUTH_MODE: 'broker',
  ...ACCEPT_PROVIDER_TOKENS,
  OAUTH_CLIENT_ID: 'gateway',
  OIDC_ISSUER: ISSUER,
  CIMD_ALLOWED_HOSTS: 'client.example',
  HTTPS_PROXY: proxy.url,
  NODE_EXTRA_CA_CERTS: authority,
  ALLOWED_HOSTS: '127.0.0.1',
});

test(
  '§14 proxies: provider, key set and documents are reached by https, and no line has the password',
  SLOW,
  async () => {
    proxy.lead('id.example:443', host.port);
    proxy.lead('client.example:443', host.port);
    const sign = await startProvider();
    const postern = await startPostern(env());
    const metadata = await fetch(`${postern.url}/.well-known/oauth-authorization-server`);
    expect(await metadata.json()).toMatchObject({
      jwks_uri: `${ISSUER}/jwks`,
      client_id_metadata_document_supported: true,
    });
    const answer = await fetch(`${postern.url}/mcp`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${await sign('http://localhost:3000/mcp')}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }),
    });
    // Without a session, but with a token that was accepted.
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({
      error: { data: { reason: 'missing_session_id' } },
    });
    expect(new Set(proxy.asked)).toEqual(
      new Set(['CONNECT id.example:443', 'CONNECT client.example:443']),
    );
    postern.kill('SIGTERM');
    expect((await postern.ended).code).toBe(0);
    expect(postern.log().filter(({ level }) => level !== 'info')).toEqual([]);
    expect(postern.stdout + postern.stderr).not.toMatch(/hunter2|c29tZW9uZTpodW50ZXIy/);
  },
);

test(
  '§14 document offer: a start without a way out is not delayed, and warns once',
  SLOW,
  async () => {
    proxy.fallSilent();
    const postern = await startPostern({ ...env(), OIDC_JWKS_URL: `${ISSUER}/jwks` });
    const warned = () => postern.log().filter(({ msg }) => /CIMD_ALLOWED_HOSTS/.test(String(msg)));
    // It answered while the check still waits.
    expect(warned()).toEqual([]);
    const metadata = await fetch(`${postern.url}/.well-known/oauth-authorization-server`);
    expect(await metadata.json()).not.toHaveProperty('client_id_metadata_document_supported');
    await expect
      .poll(warned)
      .toMatchObject([
        { level: 'warn', reasons: { 'client.example': 'no TLS connection within 5 s' } },
      ]);
    postern.kill('SIGTERM');
    expect((await postern.ended).code).toBe(0);
  },
);

test('§14 document offer: a check that is under way does not hold up the end', SLOW, async () => {
  proxy.fallSilent();
  const postern = await startPostern({ ...env(), AUTH_REQUIRED: 'false' });
  await expect.poll(() => proxy.asked).toContain('CONNECT client.example:443');
  postern.kill('SIGTERM');
  expect((await postern.ended).code).toBe(0);
  expect(postern.stdout).not.toMatch(/CIMD_ALLOWED_HOSTS/);
});
