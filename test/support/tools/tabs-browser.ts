// Chromium as users have it: one tab is in front, and the others are hidden and drawn by nobody.
// Playwright's own contexts tell every page that it is visible and has the focus.
import { spawn } from 'node:child_process';
import { type BrowserContext, chromium, type Page } from 'playwright-core';
import { createTemporaryFolder } from '../temporary-folder.ts';
import { ensureCommand } from './debian.ts';
import { endProcess } from './server-process.ts';

export interface TabsBrowser {
  /** What all of its tabs share. */
  readonly context: BrowserContext;
  /** A tab in front of all others, in their window or in one of its own. */
  openInFront(url: string, options?: { readonly inNewWindow?: boolean }): Promise<Page>;
  /** A tab behind the one in front; it has loaded, and was never drawn. */
  openBehind(url: string): Promise<Page>;
  /** All but the one that it began with: what it was before. */
  closeTabs(): Promise<void>;
  close(): Promise<void>;
}

/** What the screen is used by, in the words of Blink: whether the pointer hovers (1: no, 2: yes), how exact it is. */
const SCREENS = {
  mouse: { hover: 2, pointer: 4 },
  touch: { hover: 1, pointer: 2 },
} as const;

export type Screen = keyof typeof SCREENS;

/** A process, a profile and a display of its own: without one, Chromium takes every window for the one with the focus. */
export async function openTabsBrowser(screen: Screen): Promise<TabsBrowser> {
  ensureCommand('chromium', 'chromium');
  const { hover, pointer } = SCREENS[screen];
  const display = await startDisplay();
  const profile = await createTemporaryFolder();
  const child = spawn(
    '/usr/bin/chromium',
    [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--no-first-run',
      '--window-size=1000,1200',
      `--blink-settings=primaryHoverType=${hover},availableHoverTypes=${hover},primaryPointerType=${pointer},availablePointerTypes=${pointer}`,
      '--remote-debugging-port=0',
      `--user-data-dir=${profile.path}`,
      'about:blank',
    ],
    { env: { ...process.env, DISPLAY: display.name }, stdio: ['ignore', 'ignore', 'pipe'] },
  );
  const address = await new Promise<string>((resolve, reject) => {
    let said = '';
    child.on('exit', () => reject(new Error(`Chromium ended:\n${said}`)));
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      const [, found] = /DevTools listening on (ws:\S+)/.exec(said) ?? [];
      if (found !== undefined) resolve(found);
    });
  });
  const browser = await chromium.connectOverCDP(address, { noDefaults: true });
  const [context] = browser.contexts();
  if (context === undefined) throw new Error('Chromium has no window');
  const [first] = context.pages();
  const session = await browser.newBrowserCDPSession();

  async function open(url: string, options: { background?: boolean; newWindow?: boolean }) {
    const [page] = await Promise.all([
      context?.waitForEvent('page') ?? Promise.reject(),
      session.send('Target.createTarget', { url, ...options }),
    ]);
    await page.waitForURL(url, { waitUntil: 'load' });
    return page;
  }
  return {
    context,
    async openInFront(url, { inNewWindow = false } = {}) {
      const page = await open(url, { newWindow: inNewWindow });
      await page.bringToFront();
      await page.waitForFunction('document.hasFocus()');
      return page;
    },
    openBehind: (url) => open(url, { background: true }),
    async closeTabs() {
      for (const page of context.pages()) if (page !== first) await page.close();
    },
    async close() {
      await browser.close();
      await endProcess(child);
      await display.close();
      await profile.close();
    },
  };
}

/** A screen that nobody sees; it chooses a free number itself. */
async function startDisplay(): Promise<{ readonly name: string; close(): Promise<void> }> {
  ensureCommand('Xvfb', 'xvfb');
  const child = spawn(
    'Xvfb',
    ['-displayfd', '1', '-screen', '0', '1280x1280x24', '-nolisten', 'tcp'],
    {
      stdio: ['ignore', 'pipe', 'ignore'],
    },
  );
  const number = await new Promise<string>((resolve, reject) => {
    child.on('exit', () => reject(new Error('Xvfb ended')));
    child.stdout.setEncoding('utf8').once('data', (text: string) => resolve(text.trim()));
  });
  return { name: `:${number}`, close: () => endProcess(child) };
}
