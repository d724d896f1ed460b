// What goes wrong in a page of the documentation while it is looked at.
import type { Page } from 'playwright-core';

/** What went wrong in a page: errors of its console, scripts that failed, requests that led elsewhere. */
export function watchTroubles(page: Page, url: string): readonly string[] {
  const troubles: string[] = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) troubles.push(message.text());
  });
  page.on('pageerror', (error) => troubles.push(error.message));
  page.on('request', (request) => {
    if (!/^data:/.test(request.url()) && !request.url().startsWith(`${url}/`))
      troubles.push(request.url());
  });
  return troubles;
}

/** Waits until the page's script has taken over what the server sent. */
export async function waitUntilLoaded(page: Page): Promise<void> {
  while (!(await page.evaluate<boolean>("'_vnode' in document.querySelector('#app')"))) {
    await page.evaluate('new Promise(requestAnimationFrame)');
  }
}

/** Waits until the page has taken over the scheme of the system, and ends the transitions of its colours. */
export async function waitForScheme(page: Page, scheme: 'light' | 'dark'): Promise<void> {
  const html = page.locator(scheme === 'dark' ? 'html.dark' : 'html:not(.dark)');
  await html.waitFor({ state: 'attached' });
  await page.evaluate(END_TRANSITIONS);
}

/** One that ends may start another, in what inherits its colour. Waiting for them may take a headless browser a minute. */
const END_TRANSITIONS = `(() => {
  const running = () =>
    document.getAnimations().filter((animation) => animation instanceof CSSTransition);
  for (let left = running(); left.length > 0; left = running()) {
    for (const transition of left) transition.finish();
  }
})()`;
