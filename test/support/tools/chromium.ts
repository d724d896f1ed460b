import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from 'playwright-core';
import { ensureCommand } from './debian.ts';

/** For hooks: Chromium may have to be installed. */
export const INSTALLATION_MS = 300_000;

/** Contexts of one test file's own: nothing that another file left is in them. */
export interface TestBrowser {
  newContext(options?: BrowserContextOptions): Promise<BrowserContext>;
  /** In a context of its own. */
  newPage(options?: BrowserContextOptions): Promise<Page>;
  close(): Promise<void>;
}

let launched: Promise<Browser> | undefined;

export async function openBrowser(): Promise<TestBrowser> {
  // One for all files that a worker runs; it ends with the worker.
  launched ??= launchChromium();
  const browser = await launched;
  const contexts: BrowserContext[] = [];

  async function newContext(options?: BrowserContextOptions): Promise<BrowserContext> {
    const context = await browser.newContext(options);
    contexts.push(context);
    return context;
  }

  return {
    newContext,
    newPage: async (options) => (await newContext(options)).newPage(),
    async close() {
      for (const context of contexts) await context.close();
    },
  };
}

/** Debian's Chromium, headless; installed first where it is missing. */
async function launchChromium(): Promise<Browser> {
  ensureCommand('chromium', 'chromium');
  return chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'],
  });
}
