// How /account looks in a browser: nobody who means one button should hit the next.
import { expect, test } from 'vitest';
import { useShared } from '../support/lifetimes.ts';
import { openAccount } from '../support/oauth/account-steps.ts';
import { startOwnTokens } from '../support/oauth/own-tokens.ts';
import { INSTALLATION_MS, openBrowser } from '../support/tools/chromium.ts';

const own = useShared(() => startOwnTokens());
const browser = useShared(openBrowser, INSTALLATION_MS);

/** Pixels: half of what is between other parts of the page. */
const MIN_GAP = 9;

test.each([{ width: 1280 }, { width: 320 }])(
  '§5.11 account: no button touches the one below it, $width pixels wide',
  async ({ width }) => {
    const page = await browser.newPage({ viewport: { width, height: 800 } });
    for (const expected of [['Log out'], ['Log out', 'Log out', 'Log out everywhere']]) {
      while ((await page.getByRole('button', { name: /^Log out/ }).count()) < expected.length) {
        await own.logIn({ sub: `user-${width}` });
        const { cookie } = await openAccount(own, { sub: `user-${width}` });
        await page.setContent((await own.steps.get('/account', cookie)).text);
      }
      const buttons = await page.getByRole('button').all();
      const names = await Promise.all(buttons.map((button) => button.innerText()));
      expect(names).toEqual([...expected, 'Leave this page']);
      const boxes = await Promise.all(buttons.map((button) => button.boundingBox()));
      const gaps = boxes.slice(1).map((box, at) => {
        const above = boxes[at];
        return (box?.y ?? 0) - (above?.y ?? 0) - (above?.height ?? 0);
      });
      for (const gap of gaps) expect(gap).toBeGreaterThanOrEqual(MIN_GAP);
    }
  },
);
