// npm run lab: starts, says what to copy, serves, and ends.
import { afterEach, expect, test } from 'vitest';
import { logInAs } from '../../scripts/demo/login.ts';
import { freePorts } from '../support/gateway/ports.ts';
import { endPosterns, launch, runPostern } from '../support/gateway/process.ts';
import { REDIRECT_URI } from '../support/gateway/service.ts';
import { newPkce } from '../support/oauth/login-steps.ts';

afterEach(endPosterns);

/** The page's, and two for each provider (scripts/lab/start-lab.ts). */
const LAB_PORTS = 25;

async function startLab(...args: readonly string[]) {
  const port = await freePorts(LAB_PORTS);
  const lab = launch({}, { npm: true, args: ['-s', 'lab', '--', '--port', String(port), ...args] });
  await expect.poll(() => lab.stdout + lab.stderr).toContain('Press Ctrl+C to end.');
  return { lab, port };
}

test('§5 the lab: without a name every provider has an address, and its settings are printed', async () => {
  const { lab, port } = await startLab();
  const issuers = [...lab.stdout.matchAll(/^ {2}OIDC_ISSUER=(\S+)$/gm)].map(([, url]) => url ?? '');
  // All but GitHub, which has none.
  expect(issuers).toHaveLength(10);
  for (const issuer of issuers) {
    const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
    expect(await (await fetch(url)).json()).toMatchObject({ issuer });
  }
  expect(lab.stdout).toContain('GITHUB_URL=http://127.0.0.1:');
  expect(lab.stdout).toContain('  OAUTH_CLIENT_SECRET=');
  expect(await (await fetch(`http://localhost:${port}/`)).text()).toContain('<h2>Slack</h2>');
  lab.kill('SIGINT');
  expect(await lab.ended).toMatchObject({ code: 0 });
  await expect(fetch(`http://localhost:${port}/`)).rejects.toThrow('fetch failed');
});

test('§5 the lab: by name there is a gateway in front of it, where the login page leads back, and the page says who is there', async () => {
  const { lab, port } = await startLab('google');
  const [, mcpUrl = ''] = / (http:\/\/localhost:\d+\/mcp)$/m.exec(lab.stdout) ?? [];
  expect(lab.stdout).toContain(`claude mcp add --transport http postern-google ${mcpUrl}`);
  const { origin } = new URL(mcpUrl);
  const registered = await fetch(`${origin}/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ client_name: 'Test', redirect_uris: [REDIRECT_URI] }),
  });
  const { client_id }: { client_id?: string } = JSON.parse(await registered.text());
  const authorization = new URL(`${origin}/oauth/authorize`);
  authorization.search = new URLSearchParams({
    client_id: client_id ?? '',
    redirect_uri: REDIRECT_URI,
    response_type: 'code',
    state: 'state',
    code_challenge: newPkce().challenge,
    code_challenge_method: 'S256',
  }).toString();
  const back = await logInAs('Grace', authorization, REDIRECT_URI);
  expect(back?.searchParams.get('code')).toMatch(/./);

  const page = () => fetch(`http://localhost:${port}/`).then((answer) => answer.text());
  expect(await page()).toContain('grace@example.com');
  const out = await fetch(`http://localhost:${port}/log-out`, {
    method: 'POST',
    body: new URLSearchParams({ provider: 'google', sub: 'Grace' }),
  });
  expect(await out.text()).toContain('it has no back-channel logout');
  expect(await page()).not.toContain('grace@example.com');
  lab.kill('SIGTERM');
  expect(await lab.ended).toMatchObject({ code: 0 });
});

test('§5 the lab: a name that is none, and a port that is taken, end it with what to do', async () => {
  const unknown = await runPostern({}, { npm: true, args: ['-s', 'lab', '--', 'myspace'] });
  expect(unknown.code).toBe(2);
  expect(unknown.stderr).toContain('There is no myspace here.');
  const { port } = await startLab('dex');
  const taken = await runPostern(
    {},
    { npm: true, args: ['-s', 'lab', '--', '--port', String(port), 'dex'] },
  );
  expect(taken.code).toBe(1);
  expect(taken.stderr).toContain(
    `is taken, perhaps by another lab. Choose others: npm run lab -- --port ${port + 100}`,
  );
});
