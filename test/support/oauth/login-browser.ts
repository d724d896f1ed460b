// A login through a broker-mode gateway in a real browser, with a client on a site of its own.
import type { BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { type Service, type ServiceOptions, startService } from '../gateway/service.ts';
import { openBrowser } from '../tools/chromium.ts';
import { type ClientSite, startClientSite } from './client-site.ts';
import { newPkce, STATE } from './login-steps.ts';

/** What a page did since it was watched. */
export interface Watch {
  /** Addresses that were asked for, in order. */
  readonly requests: readonly string[];
  /** Where replies redirected to. */
  readonly redirects: readonly string[];
  /** What the console said of a content security policy. */
  readonly violations: readonly string[];
}

export interface LogInBrowser {
  readonly service: Service;
  readonly site: ClientSite;
  /** Where the client is called back. */
  readonly redirectUri: string;
  context(options?: BrowserContextOptions): Promise<BrowserContext>;
  /** A page in a new context, in which nobody is logged in anywhere. */
  page(options?: BrowserContextOptions): Promise<Page>;
  /** Resolves to the client's id. */
  register(metadata?: object): Promise<string>;
  authorizeUrl(clientId: string, change?: Readonly<Record<string, string>>): string;
  /** Asks to log in by a client, a new one by default. */
  ask(page: Page, clientId?: string, change?: Readonly<Record<string, string>>): Promise<void>;
  /** Waits for the client's page; resolves to what it was called back with. */
  back(page: Page, redirectUri?: string): Promise<Record<string, string>>;
  /** The whole way: asked, approved, logged in, back. */
  logIn(page: Page, clientId?: string): Promise<Record<string, string>>;
  close(): Promise<void>;
}

export async function startLogInBrowser(options: ServiceOptions = {}): Promise<LogInBrowser> {
  const site = await startClientSite();
  const browser = await openBrowser();
  const service = await startService({ mode: 'broker', ...options });
  site.federated(service.issuer);
  const redirectUri = `${site.origin}/callback`;

  const own: LogInBrowser = {
    service,
    site,
    redirectUri,
    context: browser.newContext,
    page: browser.newPage,
    async register(metadata = {}) {
      const answer = await fetch(`${service.baseUrl}/oauth/register`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          client_name: 'Test Client',
          redirect_uris: [redirectUri],
          ...metadata,
        }),
      });
      const { client_id } = (await answer.json()) as { client_id?: string };
      if (client_id === undefined)
        throw new Error(`The registration was answered ${answer.status}`);
      return client_id;
    },
    authorizeUrl: (clientId, change) =>
      `${service.baseUrl}/oauth/authorize?${new URLSearchParams({
        client_id: clientId,
        redirect_uri: redirectUri,
        response_type: 'code',
        scope: 'openid profile',
        state: STATE,
        code_challenge: newPkce().challenge,
        code_challenge_method: 'S256',
        ...change,
      })}`,
    async ask(page, clientId, change) {
      await page.goto(own.authorizeUrl(clientId ?? (await own.register()), change));
    },
    async back(page, to = redirectUri) {
      await page.waitForURL(`${to}?**`);
      return Object.fromEntries(new URL(page.url()).searchParams);
    },
    async logIn(page, clientId) {
      await own.ask(page, clientId);
      await approve(page);
      await logInAtProvider(page);
      return own.back(page);
    },
    async close() {
      await browser.close();
      await service.close();
      await site.close();
    },
  };
  return own;
}

/** As a user who reads the page: its buttons appear when the pointer has been on it for a moment. */
export async function showChoice(page: Page): Promise<void> {
  await page.getByRole('heading', { level: 1 }).hover();
  await page.getByRole('button', { name: 'Approve' }).waitFor();
}

export const approve = (page: Page): Promise<void> => choose(page, 'Approve');

export const deny = (page: Page): Promise<void> => choose(page, 'Deny');

async function choose(page: Page, name: string): Promise<void> {
  await showChoice(page);
  await page.getByRole('button', { name }).click();
}

export async function logInAtProvider(page: Page, name = 'ada'): Promise<void> {
  await page.getByLabel('Name').fill(name);
  await page.getByRole('button', { name: 'Log in' }).click();
}

export const heading = (page: Page) => page.getByRole('heading', { level: 1 }).innerText();

export function watch(page: Page): Watch {
  const requests: string[] = [];
  const redirects: string[] = [];
  const violations: string[] = [];
  page.on('request', (request) => requests.push(request.url()));
  page.on('response', (response) => {
    const { location } = response.headers();
    if (location !== undefined) redirects.push(location);
  });
  page.on('console', (message) => {
    if (/content security policy/i.test(message.text())) violations.push(message.text());
  });
  return { requests, redirects, violations };
}

/** The hidden fields of the page's form. */
export async function fieldsOf(page: Page): Promise<Record<string, string>> {
  const inputs = await page.locator('form input[type=hidden]').all();
  const pairs = inputs.map(async (input) => [
    await input.getAttribute('name'),
    await input.inputValue(),
  ]);
  return Object.fromEntries(await Promise.all(pairs));
}

/** Sends a form from the page, wherever it is; resolves to the reply. */
export async function postForm(page: Page, action: string, fields: Record<string, string>) {
  const inputs = Object.entries(fields).map(
    ([name, value]) => `<input name=${name} value=${value}>`,
  );
  await page.setContent(`<form method=post action=${action}>${inputs.join('')}<button>Go</button>`);
  const [reply] = await Promise.all([
    page.waitForResponse((response) => response.url() === action),
    page.getByRole('button', { name: 'Go' }).click(),
  ]);
  return reply;
}
