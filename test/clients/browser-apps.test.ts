// §30.3: the playground before an app that means harm: what it cannot reach, and what it may ask.
import type { FrameLocator, Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { createLocalCatalog } from '../../src/index.ts';
import type { JsonObject } from '../../src/platform/json.ts';
import { writeGuard } from '../support/guards/module-guard.ts';
import { closeAfterTest } from '../support/lifetimes.ts';
import { findSerious } from '../support/site/axe.ts';
import {
  callTool,
  chooseEra,
  ERAS,
  logInToPlayground,
  startSiteBrowser,
} from '../support/site/site-browser.ts';
import { parseServers } from '../support/upstreams/catalog-gateway.ts';
import { listenOnLoopback } from '../support/upstreams/listen.ts';
import { buildTool, serveForTest as serve } from '../support/upstreams/listing-server.ts';

const MIME = 'text/html;profile=mcp-app';
const PATIENT = { timeout: 30_000 };

/** An app that lets a test ask its host, and keeps what it got. */
const APP = `<!doctype html><html lang="en"><head><title>Evil</title></head><body><h1>Evil app</h1><script>
window.received = [];
let last = 0;
const waiting = new Map();
const post = (message) => parent.postMessage({ jsonrpc: '2.0', ...message }, '*');
window.ask = (method, params) => new Promise((resolve) => {
  last += 1;
  waiting.set(last, resolve);
  post({ id: last, method, params });
});
addEventListener('message', ({ data }) => {
  received.push(data);
  waiting.get(data.id)?.(data);
});
window.attempt = async (run) => {
  try { return String(await run()); } catch (error) { return error.name; }
};
ask('ui/initialize', { protocolVersion: '2026-01-26', appInfo: { name: 'evil', version: '1' }, appCapabilities: {} })
  .then(() => post({ method: 'ui/notifications/initialized', params: {} }));
</script></body></html>`;

/** Where an app must not get, unless it says so: what was asked for there. */
async function startElsewhere() {
  const paths: string[] = [];
  const { port } = closeAfterTest(
    await listenOnLoopback((req, res) => {
      paths.push(req.url ?? '');
      res.writeHead(200, { 'access-control-allow-origin': '*' }).end('reached');
    }),
  );
  return { origin: `http://127.0.0.1:${port}`, paths };
}

async function startApp({ csp = {}, rest = {}, env = {} }: Readonly<Record<string, JsonObject>>) {
  let release = (): void => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const forApp = { _meta: { ui: { resourceUri: 'ui://evil/view' } } };
  const evil = await serve({
    tools: [
      buildTool('show', forApp),
      buildTool('refresh', { _meta: { ui: { visibility: ['app'] } } }),
      buildTool('model-only', { _meta: { ui: { visibility: ['model'] } } }),
      buildTool('waits'),
      buildTool('denied'),
      buildTool('wipe', { annotations: { destructiveHint: true } }),
      buildTool('guarded'),
    ],
    answers: {
      'resources/read': ({ uri }) => ({
        result: {
          contents: [
            uri === 'ui://evil/view'
              ? { uri, mimeType: MIME, text: APP, _meta: { ui: { csp } } }
              : { uri, text: `read ${uri}` },
          ],
        },
      }),
      'tools/call': async ({ name }) => {
        if (name === 'waits') await released;
        return {
          result: {
            content: [
              { type: 'text', text: `ran ${name}` },
              { type: 'resource_link', uri: 'ui://evil/more', name: 'more' },
            ],
          },
        };
      },
    },
  });
  const other = await serve({ tools: [buildTool('secret')] });
  const site = closeAfterTest(
    await startSiteBrowser({
      deps: {
        catalog: createLocalCatalog({}),
        file: await parseServers({ mcpServers: { evil: evil.url, other: other.url }, ...rest }),
      },
      env: Object.fromEntries(Object.entries(env).map(([name, value]) => [name, String(value)])),
    }),
  );
  return { evil, other, site, release };
}

/** The document of the app, in the frame in the frame. */
const appIn = (page: Page): FrameLocator =>
  page.locator('.pg-app iframe').contentFrame().locator('iframe').contentFrame();

/** What a script of the app says. */
const runInApp = (page: Page, script: string): Promise<unknown> =>
  appIn(page).locator('body').evaluate(`attempt(async () => { ${script} })`);

/** What the host answers. */
const ask = (page: Page, method: string, params: object): Promise<unknown> =>
  appIn(page)
    .locator('body')
    .evaluate(`ask(${JSON.stringify(method)}, ${JSON.stringify(params)})`);

const headingIn = (page: Page) => appIn(page).getByRole('heading', { name: 'Evil app' });

async function show(page: Page) {
  await callTool(page, 'evil__show');
  await headingIn(page).waitFor();
  await expect
    .poll(() => appIn(page).locator('body').evaluate('received.length'), PATIENT)
    .toBeGreaterThan(2);
}

test('§30.3 playground: an app reaches neither the page nor the gateway, and nowhere that it does not declare', async () => {
  const elsewhere = await startElsewhere();
  const allowed = await startElsewhere();
  const { site } = await startApp({ csp: { connectDomains: [allowed.origin] } });
  const { page, tokens } = await site.open('/playground');
  await logInToPlayground(page);
  await page.locator('.pg-call').waitFor();
  await show(page);

  expect(await runInApp(page, 'return self.origin')).toBe('null');
  for (const script of [
    'return parent.document.title',
    'return parent.parent.document.title',
    'return top.location.href',
    'return document.cookie',
    'return localStorage.length',
    'top.location.href = "about:blank"; return "led"',
  ]) {
    expect([script, await runInApp(page, script)]).toEqual([script, 'SecurityError']);
  }
  expect(await runInApp(page, 'return window.open("about:blank")')).toBe('null');
  for (const origin of [site.service.baseUrl, elsewhere.origin]) {
    expect(await runInApp(page, `return (await fetch("${origin}/site.json")).text()`)).toBe(
      'TypeError',
    );
    const image = `const image = new Image(); image.src = "${origin}/image"; return new Promise((done) => { image.onload = () => done("loaded"); image.onerror = () => done("blocked"); })`;
    expect(await runInApp(page, image)).toBe('blocked');
  }
  expect(await runInApp(page, `return (await fetch("${allowed.origin}/api")).text()`)).toBe(
    'reached',
  );

  const given = await appIn(page).locator('body').evaluate('JSON.stringify(received)');
  expect(tokens.size).toBe(1);
  for (const token of tokens) expect(given).not.toContain(token);

  // A page in its place would be told what it wants by its address, or by a form: the browser shows none.
  for (const script of [
    `document.body.insertAdjacentHTML("beforeend", '<form method="post" action="${elsewhere.origin}/form"><button>b</button></form>'); setTimeout(() => document.querySelector("button").click())`,
    `setTimeout(() => { location.href = "${elsewhere.origin}/stolen"; })`,
  ]) {
    await show(page);
    await runInApp(page, script);
    await expect.poll(() => headingIn(page).count(), PATIENT).toBe(0);
  }
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByRole('button', { name: 'Log in', exact: true }).waitFor();
  expect(elsewhere.paths).toEqual([]);
  expect(allowed.paths).toEqual(['/api']);
});

test.each(ERAS)(
  '§30.3 playground: an app calls tools of its own server, by rules and guards, and no others (%s)',
  async (era) => {
    const use = await writeGuard(
      "return message.name === 'evil__guarded' ? { decision: 'refuse', message: 'Not this.' } : { decision: 'pass' };",
    );
    const { evil, other, site } = await startApp({
      env: { AUTH_REQUIRED: 'false' },
      rest: {
        rules: [
          {
            who: 'everyone',
            may: ['*__show', '*__refresh', '*__guarded', '*__secret', '*-only', 'resource:*'],
          },
        ],
        guards: [{ name: 'g', on: ['tools/call'], use }],
      },
    });
    const { page } = await site.open('/playground');
    await chooseEra(page, era);
    await page.getByRole('button', { name: 'Connect' }).click();
    await page.locator('.pg-call').waitFor();
    await show(page);

    // As its server wrote it, though the playground got it from the address of all servers.
    const told = await appIn(page).locator('body').evaluate('received[2].params.content[1].uri');
    expect(told).toBe('ui://evil/more');
    const call = (name: string) => ask(page, 'tools/call', { name, arguments: {} });
    expect(await call('refresh')).toMatchObject({
      result: { content: [{ text: 'ran refresh' }, {}] },
    });
    for (const name of ['model-only', 'denied', 'secret', 'other__secret', 'evil__refresh']) {
      expect([name, await call(name)]).toMatchObject([name, { error: { code: -32602 } }]);
    }
    expect(await call('guarded')).toMatchObject({
      result: { isError: true, content: [{ text: expect.stringContaining('Not this.') }] },
    });
    expect(await ask(page, 'resources/read', { uri: 'ui://evil/more' })).toMatchObject({
      result: { contents: [{ uri: 'ui://evil/more', text: 'read ui://evil/more' }] },
    });
    for (const method of ['tools/list', 'sampling/createMessage', 'constructor']) {
      expect(await ask(page, method, {})).toMatchObject({ error: { code: -32601 } });
    }
    const called = evil.requests.filter(({ method }) => method === 'tools/call');
    expect(called.map(({ params }) => params.name)).toEqual(['show', 'refresh']);
    expect(other.count('tools/call')).toBe(0);
  },
);

test('§30.3 playground: a link is opened when the user says so, and no other address than it shows', async () => {
  const elsewhere = await startElsewhere();
  const { site } = await startApp({ env: { AUTH_REQUIRED: 'false' } });
  const { page } = await site.open('/playground');
  await page.getByRole('button', { name: 'Connect' }).click();
  await page.locator('.pg-call').waitFor();
  await show(page);
  for (const url of ['javascript:alert(1)', 'data:text/html,a', 'file:///etc/passwd', 'no url']) {
    expect(await ask(page, 'ui/open-link', { url })).toMatchObject({ error: { code: -32000 } });
  }
  for (const url of [
    'https://bank.example@evil.example/',
    `https://a.example/${'a'.repeat(3_000)}`,
  ]) {
    expect(await ask(page, 'ui/open-link', { url })).toMatchObject({ error: { code: -32000 } });
  }
  const url = `${elsewhere.origin}/page`;
  const dialog = page.getByRole('dialog');
  const declined = ask(page, 'ui/open-link', { url });
  await dialog.getByText(url, { exact: true }).waitFor();
  // Another one does not take its place.
  expect(await ask(page, 'ui/open-link', { url: `${url}/2` })).toMatchObject({ error: {} });
  expect(await findSerious(page)).toEqual([]);
  await dialog.getByRole('button', { name: 'Do not open' }).click();
  expect(await declined).toMatchObject({ error: { code: -32000 } });
  expect(elsewhere.paths).toEqual([]);

  const opened = ask(page, 'ui/open-link', { url });
  const popup = page.waitForEvent('popup');
  await dialog.getByRole('button', { name: 'Open it in a new tab' }).click();
  expect(await opened).toMatchObject({ result: {} });
  const tab = await popup;
  await tab.waitForLoadState();
  expect(tab.url()).toBe(url);
  expect(await tab.evaluate('window.opener')).toBe(null);
});

test('§30.3 playground: what a tool destroys is destroyed when the user says so; who said no three times is asked no more', async () => {
  const { evil, site } = await startApp({ env: { AUTH_REQUIRED: 'false' } });
  const { page } = await site.open('/playground');
  await page.getByRole('button', { name: 'Connect' }).click();
  await page.locator('.pg-call').waitFor();
  await show(page);
  const dialog = page.getByRole('dialog');
  const wipe = () => ask(page, 'tools/call', { name: 'wipe', arguments: { path: '/all' } });
  const wiped = () => evil.requests.filter(({ params }) => params.name === 'wipe').length;

  const allowed = wipe();
  await dialog.getByText('"path": "/all"').waitFor();
  expect(wiped()).toBe(0);
  expect(await findSerious(page)).toEqual([]);
  await dialog.getByRole('button', { name: 'Call it' }).click();
  expect(await allowed).toMatchObject({ result: {} });
  expect(wiped()).toBe(1);

  for (let times = 1; times <= 3; times += 1) {
    const declined = wipe();
    await dialog.getByText('"path": "/all"').waitFor();
    // The app has said when the question appears: a key that goes on being pressed must not say yes.
    await page.keyboard.press('Enter');
    expect(await declined).toMatchObject({ error: { code: -32000 } });
    await dialog.waitFor({ state: 'hidden' });
  }
  expect(await wipe()).toMatchObject({ error: { code: -32000 } });
  expect(await ask(page, 'ui/open-link', { url: 'https://a.example/' })).toMatchObject({
    error: { code: -32000 },
  });
  expect(wiped()).toBe(1);
});

test('§30.3 playground: an app whose server’s session has ended gets the tools of no other server', async () => {
  const { site, other } = await startApp({ env: { AUTH_REQUIRED: 'false' } });
  const { page } = await site.open('/playground');
  await page.getByRole('button', { name: 'Connect' }).click();
  await page.locator('.pg-call').waitFor();
  await page.route('**/mcp/evil', (route) =>
    route.fulfill({
      status: 404,
      json: {
        jsonrpc: '2.0',
        id: null,
        error: { code: -32001, message: 'Gone', data: { reason: 'session_not_found' } },
      },
    }),
  );
  await callTool(page, 'evil__show');
  await page.getByText('The app of this tool cannot be shown.').waitFor();
  expect(await page.locator('.pg-app iframe').count()).toBe(0);
  expect(other.count('tools/call')).toBe(0);
});

test('§30.3 playground: what an app says is shown as text; more than ten requests at once are refused', async () => {
  const { evil, site, release } = await startApp({ env: { AUTH_REQUIRED: 'false' } });
  const { page } = await site.open('/playground');
  await page.getByRole('button', { name: 'Connect' }).click();
  await page.locator('.pg-call').waitFor();
  await show(page);
  const content = [{ type: 'text', text: '<img src=x onerror="window.wasRun = 1">' }];
  expect(await ask(page, 'ui/message', { role: 'user', content })).toMatchObject({ result: {} });
  await page.getByLabel('What the app says').getByText('<img src=x').waitFor();
  expect(await page.evaluate('window.wasRun')).toBe(undefined);
  const refused = runInApp(
    page,
    'const all = await Promise.all(Array.from({ length: 14 }, () => ask("tools/call", { name: "waits" }))); return all.filter(({ error }) => error !== undefined).length',
  );
  const isWaiting = ({ params }: { readonly params: JsonObject }) => params.name === 'waits';
  // The browser itself has six connections to one host, and the session of the page needs none now.
  await expect.poll(() => evil.requests.filter(isWaiting).length, PATIENT).toBe(6);
  release();
  expect(await refused).toBe('4');
  // The page goes on, and another tool takes the app away.
  await callTool(page, 'other__secret');
  await expect.poll(() => page.locator('iframe').count()).toBe(0);
});
