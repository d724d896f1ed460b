// §24.4: answers of token endpoints, as servers give them that do not keep to RFC 6749, read without trust.
import { expect, test } from 'vitest';
import { readServerTokens } from '../../../src/http/oauth-client/token-answer.ts';

const read = (
  status: number,
  body: object | string,
  sent: readonly (readonly [string, string])[] = [],
) =>
  readServerTokens(
    {
      status,
      location: undefined,
      body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
    },
    sent,
  );

const idToken = (claims: object) =>
  `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.`;

test.for([
  ['no token_type', { access_token: 'a' }, { accessToken: 'a', expiresInSeconds: undefined }],
  ['expires_in as text', { access_token: 'a', expires_in: '3600' }, { expiresInSeconds: 3600 }],
  [
    'an expires_in that is none',
    { access_token: 'a', expires_in: 'soon' },
    { expiresInSeconds: undefined },
  ],
  ['expires_in 0, for ever', { access_token: 'a', expires_in: 0 }, { expiresInSeconds: undefined }],
  [
    'GitHub’s scopes with commas',
    { access_token: 'a', scope: 'repo,user' },
    { scopes: ['repo', 'user'] },
  ],
  ['an empty scope', { access_token: 'a', scope: '' }, { scopes: undefined }],
  [
    'GitHub’s form',
    'access_token=a&scope=repo&token_type=bearer',
    { accessToken: 'a', scopes: ['repo'] },
  ],
  [
    'Slack’s user token',
    { ok: true, authed_user: { access_token: 'xoxp', scope: 'a,b' } },
    { accessToken: 'xoxp', scopes: ['a', 'b'] },
  ],
  ['an empty error beside a token', { access_token: 'a', error: null }, { accessToken: 'a' }],
  [
    'an account',
    { access_token: 'a', id_token: idToken({ sub: '1', email: 'ada@work' }) },
    { account: 'ada@work' },
  ],
  [
    'an account with what nobody sees',
    { access_token: 'a', id_token: idToken({ name: 'a\u202edb\n c' }) },
    { account: 'adb c' },
  ],
  ['an ID token that is none', { access_token: 'a', id_token: 'x' }, { account: undefined }],
] as const)('§24.4 token answers: %s is read', ([, body, tokens]) => {
  expect(read(200, body)).toMatchObject({ kind: 'issued', tokens });
});

test.for([
  ['a page', 200, '<html>Down</html>', 'failed'],
  ['a token that is longer than any', 200, { access_token: 'a'.repeat(16_385) }, 'failed'],
  ['a token that would be another header', 200, { access_token: 'a\r\nx: y' }, 'failed'],
  ['a token that needs proofs', 200, { access_token: 'a', token_type: 'DPoP' }, 'failed'],
  ['a refresh token that is a number', 200, { access_token: 'a', refresh_token: 1 }, 'failed'],
  ['invalid_grant', 400, { error: 'invalid_grant' }, 'invalid_grant'],
  ['GitHub’s bad_refresh_token', 200, { error: 'bad_refresh_token' }, 'invalid_grant'],
  ['Slack’s token_expired', 200, { ok: false, error: 'token_expired' }, 'invalid_grant'],
  ['invalid_refresh_token', 401, { error: 'invalid_refresh_token' }, 'invalid_grant'],
  ['invalid_grant of a server that is down', 503, { error: 'invalid_grant' }, 'failed'],
  ['invalid_client', 401, { error: 'invalid_client' }, 'invalid_client'],
  [
    'GitHub’s incorrect_client_credentials',
    200,
    { error: 'incorrect_client_credentials' },
    'invalid_client',
  ],
  ['Slack’s bad_client_secret', 200, { ok: false, error: 'bad_client_secret' }, 'invalid_client'],
  ['Slack’s invalid_client_id', 200, { ok: false, error: 'invalid_client_id' }, 'invalid_client'],
  ['invalid_client of a server that is down', 503, { error: 'invalid_client' }, 'failed'],
  ['a 401 without a word', 401, '', 'invalid_client'],
  ['temporarily_unavailable', 400, { error: 'temporarily_unavailable' }, 'failed'],
  ['429', 429, {}, 'failed'],
  ['500', 500, 'oops', 'failed'],
] as const)('§24.4 token answers: %s is no token', ([, status, body, kind]) => {
  expect(read(status, body)).toMatchObject({ kind });
});

test('§24.5 token answers: what is told of a refusal repeats nothing that was sent', () => {
  const secret = 'r/e+fresh token';
  const answer = read(
    400,
    {
      error: 'invalid_grant',
      error_description: `Unknown ${secret} or ${encodeURIComponent(secret)}`,
    },
    [['refresh_token', secret]],
  );
  expect(answer).toEqual({
    kind: 'invalid_grant',
    said: 'answered 400 invalid_grant: Unknown … or …',
  });
});
