// What a provider may answer in place of RFC 6749 §5.1. A login ends on a page that names provider and member; a renewal ends
// nothing.
import { expect, test } from 'vitest';
import type { Fetch } from '../../../src/platform/fetch-with-limits.ts';
import { useFresh } from '../../support/lifetimes.ts';
import { answerJson } from '../../support/oauth/emulated-logins.ts';
import { startOwnTokens, toTokens } from '../../support/oauth/own-tokens.ts';

const MINUTE_MS = 60_000;

type Body = Record<string, unknown>;
/** What becomes of an answer of the token endpoint. */
let change: ((body: Body) => unknown) | undefined;

const fetchChanged: Fetch = async (url, init) => {
  const answer = await fetch(url, init);
  if (change === undefined || !url.endsWith('/token')) return answer;
  const changed = change(JSON.parse(await answer.text()));
  return typeof changed === 'string'
    ? new Response(changed, { headers: { 'content-type': 'text/html' } })
    : answerJson(200, changed);
};

const own = useFresh(async () => {
  change = undefined;
  return startOwnTokens({ deps: { fetch: fetchChanged } });
});

const UNUSABLE: readonly { what: string; member: string; alter: (body: Body) => unknown }[] = [
  { what: 'a page', member: 'body', alter: () => '<html>Sorry</html>' },
  { what: 'a list', member: 'body', alter: () => [] },
  { what: 'nothing', member: 'access_token', alter: () => ({}) },
  {
    what: 'no access token',
    member: 'access_token',
    alter: ({ access_token: _, ...body }) => body,
  },
  {
    what: 'a number for an access token',
    member: 'access_token',
    alter: (body) => ({ ...body, access_token: 7 }),
  },
  {
    what: 'a word for expires_in',
    member: 'expires_in',
    alter: (body) => ({ ...body, expires_in: 'soon' }),
  },
  {
    what: 'an object for expires_in',
    member: 'expires_in',
    alter: (body) => ({ ...body, expires_in: {} }),
  },
  {
    what: 'a list for an ID token',
    member: 'id_token',
    alter: (body) => ({ ...body, id_token: [] }),
  },
  { what: 'an error that nobody knows', member: 'error', alter: () => ({ error: 'weird' }) },
  {
    what: 'ok: false and an error that nobody knows',
    member: 'error',
    alter: () => ({ ok: false, error: 'team_added_to_org' }),
  },
];

test.each(UNUSABLE)(
  '§5.11 login: $what ends it on a page that names provider and $member',
  async ({ member, alter }) => {
    const client = await own.steps.register();
    const { cookie, asked } = await own.steps.approve(client);
    change = alter;
    const { status, headers, text } = await own.steps.callback(own.provider.logIn(asked), cookie);
    expect([status, headers.location]).toEqual([502, undefined]);
    expect(text).toContain(`In the answer of ${own.provider.issuer.url}, ${member} is`);
    // The person may go back to the app, which is told then.
    expect(text).toContain('https://client.example/callback?error=server_error');
    const told = own.gateway.log.filter((line) => JSON.stringify(line).includes(`, ${member} is`));
    expect(told.map(({ level }) => level)).toEqual(['warn']);
  },
);

test('§5.11 login: what came with an answer that cannot be used ends at the provider', async () => {
  const { cookie, asked } = await own.steps.approve(await own.steps.register());
  change = (body) => ({ ...body, expires_in: 'soon' });
  await own.steps.callback(own.provider.logIn(asked), cookie);
  await expect.poll(() => own.provider.revoked).toHaveLength(1);
});

test.each(UNUSABLE)(
  '§5.11 refresh: $what at a renewal signs nobody out, and the next one is good again',
  async ({ alter }) => {
    own.provider.rotates = false;
    const first = await own.logIn();
    change = alter;
    own.clock.advance(61 * MINUTE_MS);
    const second = toTokens(first.client, await own.refresh(first));
    expect((await own.call(second.access)).status).toBe(200);
    change = undefined;
    own.clock.advance(61 * MINUTE_MS);
    expect((await own.refresh(second)).status).toBe(200);
  },
);

test.each(UNUSABLE.filter(({ member }) => member !== 'body' && member !== 'error').slice(1))(
  '§5.11 refresh: with $what, the refresh token that came with it is kept: the one before is worthless',
  async ({ alter }) => {
    const first = await own.logIn();
    change = alter;
    own.clock.advance(61 * MINUTE_MS);
    const second = toTokens(first.client, await own.refresh(first));
    change = undefined;
    own.clock.advance(61 * MINUTE_MS);
    expect((await own.refresh(second)).status).toBe(200);
    expect(own.provider.asked.refresh).toBe(2);
  },
);

test.each(['3600', '3600.0', ' 3600 ', null, '', 0])(
  '§5.11 login: expires_in %o can be read, or says nothing',
  async (expiresIn) => {
    change = (body) => ({ ...body, expires_in: expiresIn });
    const tokens = await own.logIn();
    own.clock.advance(61 * MINUTE_MS);
    expect((await own.refresh(tokens)).status).toBe(200);
  },
);

test.each(['invalid_grant', 'access_denied', 'temporarily_unavailable'])(
  'RFC 6749 §5.2 login: %s with status 200 is what it is with 400',
  async (error) => {
    const { cookie, asked } = await own.steps.approve(await own.steps.register());
    change = () => ({ error, error_description: 'Some reason' });
    const { headers } = await own.steps.callback(own.provider.logIn(asked), cookie);
    const back = new URL(headers.location ?? '').searchParams;
    expect(back.get('error')).toBe('server_error');
    expect(back.get('error_description')).toContain(`refused the login`);
    expect(back.get('error_description')).toContain(`${error}: Some reason`);
  },
);

test('RFC 6749 §5.2 refresh: invalid_grant with status 200 ends the login, as it does with 400', async () => {
  const tokens = await own.logIn();
  change = () => ({ error: 'invalid_grant' });
  own.clock.advance(61 * MINUTE_MS);
  expect((await own.refresh(tokens)).json.error).toBe('invalid_grant');
});

test('§5.11 refresh: the gateway’s own client refused with status 200 logs nobody out', async () => {
  const tokens = await own.logIn();
  change = () => ({ error: 'invalid_client' });
  own.clock.advance(61 * MINUTE_MS);
  expect((await own.refresh(tokens)).status).toBe(200);
});

test.each([
  { member: 'exp', claims: { exp: '1800000300' } },
  { member: 'iat', claims: { iat: undefined } },
  { member: 'sub', claims: { sub: 7 } },
  { member: 'aud', claims: { aud: undefined } },
])(
  '§13.1 login: the client is told provider and member where $member of the ID token is no good',
  async ({ member, claims }) => {
    own.provider.idToken = claims;
    const { cookie, asked } = await own.steps.approve(await own.steps.register());
    const { headers } = await own.steps.callback(own.provider.logIn(asked), cookie);
    const back = new URL(headers.location ?? '').searchParams;
    expect(back.get('error')).toBe('server_error');
    expect(back.get('error_description')).toContain(
      `The ID token's ${member} claim was rejected (${own.provider.issuer.url})`,
    );
  },
);
