import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from 'playwright-core';
import { onTestFinished } from 'vitest';
import { getCurrentTest } from 'vitest/suite';
import { ensureCommand } from './debian.ts';

/** For hooks: Chromium may have to be installed. */
export const INSTALLATION_MS = 300_000;

/**
 * Contexts of one test file's own: nothing that another file left is in them. What a test opens is closed with the test,
 * as every page is a process that goes on.
 */
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
  /** What hooks have opened. */
  const contexts: BrowserContext[] = [];

  async function newContext(options?: BrowserContextOptions): Promise<BrowserContext> {
    const context = await browser.newContext(options);
    if (getCurrentTest() === undefined) contexts.push(context);
    else onTestFinished(() => context.close());
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

/**
 * Debian's Chromium without its windows, for half the processor time; installed first where it is missing. The whole one
 * is in tabs-browser.ts.
 */
async function launchChromium(): Promise<Browser> {
  ensureCommand('chromium-headless-shell', 'chromium-headless-shell');
  return chromium.launch({
    executablePath: '/usr/bin/chromium-headless-shell',
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'],
  });
}
