// §13: the moment before Approve begins when the page is drawn in front, not when it is loaded.
import type { CDPSession, Page } from 'playwright-core';
import { afterEach, describe, expect, test } from 'vitest';
import { useShared } from '../support/lifetimes.ts';
import { heading, startLogInBrowser } from '../support/oauth/login-browser.ts';
import { INSTALLATION_MS } from '../support/tools/chromium.ts';
import { openTabsBrowser, type Screen, type TabsBrowser } from '../support/tools/tabs-browser.ts';

const ASKED = 'Allow “Test Client” to log in as you?';

/** Where Approve is, in a window of the size that all of these have: looking for it would draw the page. */
let place: { readonly x: number; readonly y: number };

const own = useShared(startLogInBrowser, INSTALLATION_MS);

const consentUrl = async () => own.authorizeUrl(await own.register());
const openFront = (browser: TabsBrowser, inNewWindow = false) =>
  browser.openInFront(`${own.site.origin}/front`, { inNewWindow });

/** The page's own clock; what it waited for behind others has passed. */
const waitLonger = (page: Page) =>
  expect.poll(() => page.evaluate<number>('performance.now()')).toBeGreaterThan(1500);

/** Milliseconds that a page has to have been in front before Approve begins, as html-page.ts has them. */
const MOMENT_MS = 600;

/** As often as a click or tap may come too late, on a machine that is busy with other things. */
const TRIES = 20;
/** Milliseconds that a click or tap may take to reach the page. */
const CLICK_MS = 5_000;

/**
 * The page's own clock says how long it was in front when a click or tap reached it. One that came after the page's moment
 * would rightly approve: it is stopped, and says nothing.
 */
const watchClicks = (page: Page) =>
  page.evaluate(`(() => {
    let inFrontAt;
    window.clicked = undefined;
    (function look() {
      if (document.visibilityState === 'visible' && document.hasFocus()) inFrontAt = performance.now();
      else requestAnimationFrame(look);
    })();
    function note(event) {
      const isLate = performance.now() - inFrontAt >= ${MOMENT_MS};
      window.clicked = isLate || window.clicked === 'late' ? 'late' : 'in time';
      if (isLate && event.type === 'click') event.preventDefault();
    }
    for (const type of ['mousedown', 'mouseup', 'touchstart', 'touchend', 'click'])
      addEventListener(type, note, { capture: true });
    window.stopWatching = () => {
      for (const type of ['mousedown', 'mouseup', 'touchstart', 'touchend', 'click'])
        removeEventListener(type, note, { capture: true });
    };
  })()`);

/** The page that asks, and the one in front of it. */
interface Pages {
  readonly front: Page;
  readonly consent: Page;
}

/**
 * `click` brings the page to the front and clicks or taps at once; nothing is approved by that. What came too late is tried
 * again with a new page, as is what never reached it.
 */
async function expectIgnored(
  browser: TabsBrowser,
  prepare: () => Promise<Pages>,
  click: (pages: Pages) => Promise<void>,
): Promise<Page> {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const pages = await prepare();
    await watchClicks(pages.consent);
    await click(pages);
    await expectUnanswered(pages.consent);
    await waitForClick(pages.consent);
    await expectUnanswered(pages.consent);
    if ((await pages.consent.evaluate('window.clicked')) === 'in time') {
      await pages.consent.evaluate('window.stopWatching()');
      return pages.consent;
    }
    await browser.closeTabs();
  }
  throw new Error(
    `${TRIES} times, the page was in front for ${MOMENT_MS} ms before it was clicked, or no click reached it`,
  );
}

/** On a busy machine the browser may drop what it got while tabs changed: then nothing was tried, and a new page is. */
const waitForClick = (page: Page) =>
  page.waitForFunction('window.clicked', undefined, { timeout: CLICK_MS }).catch(() => {});

const isHidden = (page: Page) => page.evaluate<boolean>('document.visibilityState === "hidden"');
const isShown = (page: Page) => page.getByRole('button', { name: 'Approve' }).isVisible();

/** Nothing was sent: the page is still the one that asks. */
async function expectUnanswered(page: Page): Promise<void> {
  // A request of the click would have left by now: the page has answered twice since.
  await page.evaluate('new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)))');
  expect([await heading(page), page.url()]).toEqual([
    ASKED,
    expect.stringContaining('/authorize?'),
  ]);
}

async function expectApproved(page: Page): Promise<void> {
  await page.waitForURL(`${own.service.issuer}/**`);
}

async function findPlace(browser: TabsBrowser): Promise<void> {
  const page = await browser.openInFront(await consentUrl());
  const box = await page.locator('button.primary').boundingBox();
  if (box === null) throw new Error('There is no button');
  place = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  await page.close();
}

/** A browser for all tests of a `describe`: each begins with none of the tabs of the one before. */
function useTabs(screen: Screen): TabsBrowser {
  const browser = useShared(async () => {
    const opened = await openTabsBrowser(screen);
    await findPlace(opened);
    return opened;
  }, INSTALLATION_MS);
  afterEach(() => browser.closeTabs());
  return browser;
}

describe('by the pointer', () => {
  const browser = useTabs('mouse');

  /** The second half of a double click, after the page in front closed itself. */
  async function clickOnceInFront(consent: Page): Promise<void> {
    await consent.bringToFront();
    await consent.mouse.down({ clickCount: 2 });
    await consent.mouse.up({ clickCount: 2 });
  }

  async function approveByPointer(consent: Page): Promise<void> {
    await consent.mouse.move(place.x, place.y);
    await consent.getByRole('button', { name: 'Approve' }).waitFor();
    await consent.mouse.click(place.x, place.y);
    await expectApproved(consent);
  }

  async function comeToFront({ front, consent }: Pages): Promise<void> {
    await front.close();
    await clickOnceInFront(consent);
  }

  /** Where a page was, and how the one in front of it was opened. */
  const PLACES: Readonly<Record<string, () => Promise<Pages>>> = {
    'was drawn, and covered by another tab': async () => {
      const consent = await browser.openInFront(await consentUrl());
      await consent.mouse.move(place.x, place.y);
      await consent.getByRole('button', { name: 'Approve' }).waitFor();
      const front = await openFront(browser);
      await expect.poll(() => isHidden(consent)).toBe(true);
      await waitLonger(consent);
      return { front, consent };
    },
    // The tools' pointer gives the focus to the page that it moves on, so it rests while the page is behind.
    'is in a background window, though the pointer is on it': async () => {
      const consent = await browser.openInFront(await consentUrl());
      await consent.mouse.move(place.x, place.y);
      await consent.getByRole('button', { name: 'Approve' }).waitFor();
      const front = await openFront(browser, true);
      await expect.poll(() => isShown(consent)).toBe(false);
      await waitLonger(consent);
      expect([await isShown(consent), await isHidden(consent)]).toEqual([false, false]);
      return { front, consent };
    },
    'was loaded in a background window': async () => {
      const consent = await browser.openInFront(`${own.site.origin}/before`);
      await consent.mouse.move(place.x, place.y);
      const front = await openFront(browser, true);
      await consent.goto(await consentUrl());
      await waitLonger(consent);
      expect([await isShown(consent), await isHidden(consent)]).toEqual([false, false]);
      return { front, consent };
    },
  };

  test('§4.6 consent: a page that was never drawn is not approved by the click that finds it in front', async () => {
    const prepare = async () => {
      const front = await openFront(browser);
      const consent = await browser.openBehind(await consentUrl());
      expect(await isHidden(consent)).toBe(true);
      await waitLonger(consent);
      return { front, consent };
    };
    const consent = await expectIgnored(browser, prepare, async ({ front, consent: page }) => {
      // It learns of the pointer before it is drawn.
      const moved = page.mouse.move(place.x, place.y);
      await front.close();
      await page.bringToFront();
      await moved;
      await clickOnceInFront(page);
    });
    await approveByPointer(consent);
  });

  test.each(Object.entries(PLACES))('§4.6 consent: nor is one that %s', async (_was, prepare) => {
    await approveByPointer(await expectIgnored(browser, prepare, comeToFront));
  });
});

describe('by touch', () => {
  const browser = useTabs('touch');

  /** What taps: all that takes a while is done before. */
  async function openTouch(page: Page): Promise<() => Promise<void>> {
    const session: CDPSession = await page.context().newCDPSession(page);
    return async function tap() {
      await session.send('Input.dispatchTouchEvent', { type: 'touchStart', touchPoints: [place] });
      await session.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] });
      await session.detach();
    };
  }

  /** Where a page was, and how the one in front of it was opened. */
  const PLACES = {
    'never drawn': async () => {
      const front = await openFront(browser);
      return { front, consent: await browser.openBehind(await consentUrl()) };
    },
    'drawn, and covered by another tab': async () => {
      const consent = await browser.openInFront(await consentUrl());
      await consent.getByRole('button', { name: 'Approve' }).waitFor();
      return { front: await openFront(browser), consent };
    },
    'drawn, and is in a background window': async () => {
      const consent = await browser.openInFront(await consentUrl());
      await consent.getByRole('button', { name: 'Approve' }).waitFor();
      return { front: await openFront(browser, true), consent };
    },
    'loaded in a background window': async () => {
      const consent = await browser.openInFront(`${own.site.origin}/before`);
      const front = await openFront(browser, true);
      await consent.goto(await consentUrl());
      return { front, consent };
    },
  } as const;

  test.each([
    'never drawn',
    'drawn, and covered by another tab',
    'drawn, and is in a background window',
    'loaded in a background window',
  ] as const)(
    '§4.6 consent: a page that was %s is not approved by the tap that finds it in front',
    async (was) => {
      const prepare = async () => {
        const pages = await PLACES[was]();
        const { consent } = pages;
        expect(await consent.evaluate('matchMedia("(hover: none)").matches')).toBe(true);
        await expect.poll(() => isShown(consent)).toBe(false);
        await waitLonger(consent);
        return pages;
      };
      const consent = await expectIgnored(browser, prepare, async ({ front, consent: page }) => {
        const tapOnce = await openTouch(page);
        await front.close();
        await page.bringToFront();
        await tapOnce();
      });
      await consent.getByRole('button', { name: 'Approve' }).waitFor();
      await (await openTouch(consent))();
      await expectApproved(consent);
    },
  );
});

describe('by the keyboard', () => {
  const browser = useTabs('mouse');

  const focused = (page: Page) =>
    page.evaluate<string>(
      'document.activeElement.ariaLabel ?? document.activeElement.textContent.trim()',
    );

  /** With the keyboard's focus on Approve. */
  async function reachApprove(page: Page): Promise<void> {
    // Where Tab leads to first, unless the window's own controls had the focus.
    await page.locator('.before-choice').focus();
    await page.getByRole('button', { name: 'Approve' }).waitFor();
    await page.keyboard.press('Tab');
    expect(await focused(page)).toBe('Approve');
  }

  test('§4.6 consent: keys find nothing to press on a page that was never drawn', async () => {
    const front = await openFront(browser);
    const consent = await browser.openBehind(await consentUrl());
    await waitLonger(consent);
    await front.close();
    await consent.bringToFront();
    for (const key of ['Enter', 'Space', 'Tab', 'Enter', 'Space'])
      await consent.keyboard.press(key);
    await expectUnanswered(consent);

    await reachApprove(consent);
    await consent.keyboard.press('Enter');
    await expectApproved(consent);
  });

  test.each(['Enter', 'Space'])(
    '§4.6 consent: a page that was covered while Approve had the focus is not approved by %s',
    async (key) => {
      const consent = await browser.openInFront(await consentUrl());
      await reachApprove(consent);
      const front = await openFront(browser);
      await expect.poll(() => isHidden(consent)).toBe(true);
      await waitLonger(consent);
      await front.close();
      await consent.bringToFront();
      await consent.keyboard.press(key);
      await expectUnanswered(consent);
      // The focus waits before the buttons, and they come after another moment.
      await consent.getByRole('button', { name: 'Approve' }).waitFor();
      await consent.keyboard.press(key);
      await expectUnanswered(consent);
      expect(await focused(consent)).toMatch(/^Approve and Deny become active/);
      await consent.keyboard.press('Tab');
      expect(await focused(consent)).toBe('Approve');
      await consent.keyboard.press(key);
      await expectApproved(consent);
    },
  );

  test.each(['Enter', 'Space'])(
    '§4.6 consent: %s that is held down presses nothing, however long',
    async (key) => {
      const consent = await browser.openInFront(await consentUrl());
      // Down in another page: here it only repeats itself.
      const session = await consent.context().newCDPSession(consent);
      await reachApprove(consent);
      const text = key === 'Enter' ? '\r' : ' ';
      const held = { key: key === 'Enter' ? key : ' ', code: key, text, autoRepeat: true };
      const windowsVirtualKeyCode = text.charCodeAt(0);
      for (let times = 0; times < 5; times += 1) {
        await session.send('Input.dispatchKeyEvent', {
          type: 'keyDown',
          windowsVirtualKeyCode,
          ...held,
        });
      }
      await session.send('Input.dispatchKeyEvent', {
        type: 'keyUp',
        windowsVirtualKeyCode,
        key: held.key,
        code: key,
      });
      await expectUnanswered(consent);
      await consent.keyboard.press(key);
      await expectApproved(consent);
    },
  );
});
