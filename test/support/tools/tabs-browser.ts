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
  close(): Promise<void>;
}

/** What the screen is used by; without the mouse, Chromium without a display takes it for one that is touched. */
const SCREENS = {
  mouse: [
    '--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4',
  ],
  touch: ['--touch-events=enabled'],
} as const;

/** A process and a profile of its own, headless. */
export async function openTabsBrowser(screen: keyof typeof SCREENS): Promise<TabsBrowser> {
  ensureCommand('chromium', 'chromium');
  const profile = await createTemporaryFolder();
  const child = spawn(
    '/usr/bin/chromium',
    [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--no-first-run',
      '--window-size=1000,1200',
      ...SCREENS[screen],
      '--remote-debugging-port=0',
      `--user-data-dir=${profile.path}`,
      'about:blank',
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
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
      return page;
    },
    openBehind: (url) => open(url, { background: true }),
    async close() {
      await browser.close();
      await endProcess(child);
      await profile.close();
    },
  };
}
