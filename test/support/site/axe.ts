// What axe finds on a page.
import axe from 'axe-core';
import type { Page } from 'playwright-core';

/** In a world of its own, which the policy of the page does not hold for. */
export async function findSerious(page: Page): Promise<readonly string[]> {
  const cdp = await page.context().newCDPSession(page);
  const { frameTree } = await cdp.send('Page.getFrameTree');
  const { executionContextId: contextId } = await cdp.send('Page.createIsolatedWorld', {
    frameId: frameTree.frame.id,
  });
  const evaluate = (expression: string) =>
    cdp.send('Runtime.evaluate', {
      expression,
      contextId,
      awaitPromise: true,
      returnByValue: true,
    });
  await evaluate(axe.source);
  const { result } = await evaluate(
    'axe.run().then(({ violations }) => JSON.stringify(violations))',
  );
  const violations: readonly axe.Result[] = JSON.parse(result.value);
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
}
