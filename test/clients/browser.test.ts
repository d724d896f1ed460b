import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { startService } from '../support/gateway/service.ts';
import { useShared } from '../support/lifetimes.ts';
import { startClientSite } from '../support/oauth/client-site.ts';
import { INSTALLATION_MS, openBrowser } from '../support/tools/chromium.ts';

const browser = useShared(openBrowser, INSTALLATION_MS);
const service = useShared(startService);
/** On another origin than the gateway's. */
const site = useShared(startClientSite);

const pageUrl = () => `${site.neighbour}/`;

async function openPage(): Promise<Page> {
  const page = await browser.newPage();
  await page.goto(pageUrl());
  return page;
}

/** POST /mcp from within the page: what its script gets to see. */
function call(page: Page, message: object, headers: Record<string, string> = {}) {
  return page.evaluate(
    async ({ url, body, added }) => {
      const answer = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...added },
        body: JSON.stringify(body),
      });
      return {
        status: answer.status,
        headers: Object.fromEntries(answer.headers),
        body: JSON.parse(await answer.text()),
      };
    },
    { url: service.mcpUrl.href, body: { jsonrpc: '2.0', id: 1, ...message }, added: headers },
  );
}

test('§4.12 browser: a page on another origin sees where to log in', async () => {
  const page = await openPage();
  const { status, headers } = await call(page, { method: 'initialize' });
  expect(status).toBe(401);
  expect(headers['www-authenticate']).toBe(
    `Bearer resource_metadata="${service.baseUrl}/.well-known/oauth-protected-resource"`,
  );
  await page.close();
});

test('§4.12 browser: a page on another origin opens a session, calls a tool and ends it', async () => {
  const page = await openPage();
  const { accessToken } = await service.logIn('ada');
  const authorization = `Bearer ${accessToken}`;

  const initialized = await call(
    page,
    {
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {} },
    },
    { authorization },
  );
  expect(initialized.status).toBe(200);
  const session = initialized.headers['mcp-session-id'] ?? '';
  expect(session).toMatch(/^[0-9a-f-]{36}$/);
  expect(Date.parse(initialized.headers['x-session-expires-at'] ?? '')).toBeGreaterThan(0);
  expect(initialized.headers['x-ratelimit-limit']).toBe('10000');

  const inSession = {
    authorization,
    'mcp-session-id': session,
    'mcp-protocol-version': '2025-11-25',
  };
  const pong = await call(
    page,
    { method: 'tools/call', params: { name: 'service_ping', arguments: { message: 'hi' } } },
    inSession,
  );
  expect(pong.body.result.content).toEqual([{ type: 'text', text: 'Postern MCP Server: hi' }]);

  const ended = await page.evaluate(
    ({ url, headers }) => fetch(url, { method: 'DELETE', headers }).then(({ status }) => status),
    { url: service.mcpUrl.href, headers: inSession },
  );
  expect(ended).toBe(204);
  await page.close();
});

test('§4.8 browser: a page on another origin registers a client and reads the metadata', async () => {
  const page = await openPage();
  const seen = await page.evaluate(
    async ({ baseUrl, redirectUri }) => {
      const metadata = await fetch(`${baseUrl}/.well-known/oauth-authorization-server`, {
        headers: { 'mcp-protocol-version': '2025-11-25' },
      }).then(async (answer) => JSON.parse(await answer.text()));
      const registered = await fetch(metadata.registration_endpoint, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ redirect_uris: [redirectUri] }),
      });
      return { status: registered.status, client: await registered.json() };
    },
    { baseUrl: service.baseUrl, redirectUri: pageUrl() },
  );
  expect(seen).toMatchObject({ status: 201, client: { redirect_uris: [pageUrl()] } });
  await page.close();
});

test('§4.6 browser: authorize leads to the provider, its login, and back to the client', async () => {
  const registered = await fetch(`${service.baseUrl}/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ redirect_uris: [pageUrl()] }),
  });
  const { client_id } = (await registered.json()) as { client_id: string };
  const page = await browser.newPage();
  await page.goto(
    `${service.baseUrl}/oauth/authorize?${new URLSearchParams({
      client_id,
      redirect_uri: pageUrl(),
      response_type: 'code',
      scope: 'openid profile',
      state: 'a state',
      code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
      code_challenge_method: 'S256',
    })}`,
  );
  expect(new URL(page.url()).origin).toBe(service.issuer);
  await page.getByLabel('Name').fill('ada');
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.waitForURL(`${pageUrl()}?**`);

  const back = new URL(page.url()).searchParams;
  expect(back.get('state')).toBe('a state');
  expect(back.get('code')).toMatch(/^\S{20,}$/);
  await page.close();
});
