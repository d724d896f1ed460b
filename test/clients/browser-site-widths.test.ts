// The documentation pages on a phone, a tablet, a laptop and a large screen: nothing is cut, and tables can be read.
import { expect, test } from 'vitest';
import { useShared } from '../support/lifetimes.ts';
import { DOCUMENTATION } from '../support/site/documentation.ts';
import { startSiteBrowser } from '../support/site/site-browser.ts';
import { waitUntilLoaded, watchTroubles } from '../support/site/troubles.ts';
import { INSTALLATION_MS } from '../support/tools/chromium.ts';

const own = useShared(startSiteBrowser, INSTALLATION_MS);

const [PHONE, TABLET, LAPTOP, LARGE] = [390, 834, 1280, 1920] as const;

/** Functions for the page: each returns what is wrong with it. */
const CHECKS = {
  page: `() => {
    const width = document.documentElement.scrollWidth;
    return width > innerWidth ? ['is ' + width + ' px wide'] : [];
  }`,
  length: `() => {
    const screens = Math.ceil(document.documentElement.scrollHeight / innerHeight);
    return screens > 30 ? ['is ' + screens + ' screens long'] : [];
  }`,
  // Beyond the text around it, or a cell of which a part is not shown.
  tables: `() => [...document.querySelectorAll('.vp-doc table')].flatMap((table, at) => {
    const frame = table.closest('.vp-doc').getBoundingClientRect();
    const isCut = (part) => {
      const { left, right } = part.getBoundingClientRect();
      const isOutside = left < frame.left - 1 || right > frame.right + 1;
      return isOutside || (part.clientWidth > 0 && part.scrollWidth > part.clientWidth + 1);
    };
    const parts = [table, ...table.querySelectorAll('tbody td:not(:empty), tbody td *')];
    const cut = parts.find(isCut);
    return cut ? ['table ' + (at + 1) + ', ' + cut.tagName + ' ' + cut.textContent.slice(0, 60)] : [];
  })`,
  code: `() => [...document.querySelectorAll('.vp-doc pre')]
    .filter((block) => block.scrollWidth > block.clientWidth)
    .map((block) => block.scrollWidth - block.clientWidth + ' px of ' + block.innerText.slice(0, 60))`,
  // Above each cell, as long as it has a column's name and something to say.
  labels: `() => [...document.querySelectorAll('.vp-doc table')].flatMap((table, at) => {
    const heads = [...table.querySelectorAll('thead th')].map((head) => head.textContent.trim());
    const wrong = [...table.querySelectorAll('tbody tr')].flatMap((row) =>
      [...row.cells].flatMap((cell, column) => {
        const isNamed = heads[column] !== '' && cell.textContent !== '';
        const wanted = isNamed ? JSON.stringify(heads[column]) : 'none';
        const { content } = getComputedStyle(cell, '::before');
        return content === wanted ? [] : ['table ' + (at + 1) + ': ' + content + ' for ' + wanted];
      }),
    );
    return wrong.slice(0, 1);
  })`,
};

type Check = keyof typeof CHECKS;

/** What is looked for at each width. */
const LOOKED_FOR: readonly (readonly [width: number, checks: readonly Check[]])[] = [
  [PHONE, ['page', 'tables', 'labels']],
  [TABLET, ['page', 'tables', 'labels']],
  [LAPTOP, ['page', 'tables', 'code', 'length']],
  [LARGE, ['page', 'tables', 'code']],
];

/** What the checks find at a width, each finding with its page: the pages are opened once for all of them. */
const findings = useShared(async () => {
  const { page } = await own.open('/guide');
  const watched = watchTroubles(page, own.service.baseUrl);
  const found = new Map<string, string[]>();
  const headings: [path: string, count: number][] = [];
  const troubles: string[] = [];
  for (const path of DOCUMENTATION) {
    const before = watched.length;
    await page.goto(own.service.baseUrl + path);
    await waitUntilLoaded(page);
    headings.push([path, await page.getByRole('heading', { level: 1 }).count()]);
    for (const [width, checks] of LOOKED_FOR) {
      await page.setViewportSize({ width, height: 900 });
      for (const check of checks) {
        const here: readonly string[] = await page.evaluate(`(${CHECKS[check]})()`);
        const key = `${check} ${width}`;
        found.set(key, [...(found.get(key) ?? []), ...here.map((what) => `${path}: ${what}`)]);
      }
    }
    troubles.push(...watched.slice(before).map((what) => `${path}: ${what}`));
  }
  return {
    headings,
    troubles,
    get: (check: Check, width: number) => found.get(`${check} ${width}`),
  };
}, INSTALLATION_MS);

test('§4.1 pages: all load what they need from the gateway at the root, and the policy blocks nothing', async () => {
  expect(findings.troubles).toEqual([]);
  expect(findings.headings).toEqual(DOCUMENTATION.map((path) => [path, 1]));
});

test.each([PHONE, TABLET, LAPTOP, LARGE])(
  '§4.1 pages: none is wider than a screen of %d px',
  async (width) => {
    expect(findings.get('page', width)).toEqual([]);
  },
);

test('§4.1 pages: each has one subject, on at most 30 screens of a laptop', async () => {
  expect(findings.get('length', LAPTOP)).toEqual([]);
});

test.each([PHONE, TABLET, LAPTOP, LARGE])(
  '§4.1 pages: every table is shown whole on a screen of %d px',
  async (width) => {
    expect(findings.get('tables', width)).toEqual([]);
  },
);

test.each([LAPTOP, LARGE])(
  '§4.1 pages: no line of code is cut on a screen of %d px',
  async (width) => {
    expect(findings.get('code', width)).toEqual([]);
  },
);

test.each([PHONE, TABLET])(
  '§4.1 pages: each cell of a table has the name of its column above it on a screen of %d px',
  async (width) => {
    expect(findings.get('labels', width)).toEqual([]);
  },
);

test('§4.1 pages: the headings of a page can be chosen on a large screen, too', async () => {
  const { page } = await own.open('/settings', { viewport: { width: LARGE, height: 900 } });
  await page.getByRole('button', { name: 'On this page' }).click();
  await page.getByRole('link', { name: 'Rate limits', exact: true }).click();
  await page.waitForURL(/\/settings#rate-limits$/);
});
