import { type Browser, chromium } from 'playwright-core';
import { ensureCommand } from './debian.ts';

/** Debian's Chromium, headless; installed first where it is missing. */
export async function launchChromium(): Promise<Browser> {
  ensureCommand('chromium', 'chromium');
  return chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'],
  });
}
