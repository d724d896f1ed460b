// The documentation site (§4.1): docs/*.md → dist/site, which the gateway serves.
import { defineConfig } from 'vitepress';
import { getPageKind, SLOTS } from '../../src/pages/slots.ts';
import { configureMarkdown, createAnchor } from './markdown.ts';
import { SIDEBAR } from './sidebar.ts';

/** It is not known at build: the path of BASE_URL takes its place when the gateway starts. */
const BASE = `${SLOTS.base_path}/` as const;

const NOT_FOUND =
  '<noscript><h1>Page not found</h1><p>There is nothing at this address.</p></noscript>';

export default defineConfig({
  title: 'Postern',
  titleTemplate: ':title · Postern',
  description: 'An MCP gateway behind your OpenID provider.',
  lang: 'en',
  base: BASE,
  outDir: '../dist/site',
  cacheDir: '../node_modules/.vitepress-cache',
  srcExclude: ['decisions/**', 'examples/**'],
  cleanUrls: true,
  // The pages come from nearby: those that nobody opens need not be loaded.
  router: { prefetchLinks: false },
  // Page data in a file of its own, and not in each page: fewer inline scripts, smaller pages.
  metaChunk: true,
  // Otherwise the switch of colours adds a style element, which the policy of the pages forbids.
  appearance: { disableTransition: false },
  head: [
    ['link', { rel: 'icon', sizes: '32x32', href: `${BASE}favicon.ico` }],
    ['link', { rel: 'icon', type: 'image/svg+xml', href: `${BASE}assets/icon.svg` }],
    ['meta', { name: 'color-scheme', content: 'light dark' }],
  ],
  markdown: {
    config: configureMarkdown,
    anchor: { slugify: createAnchor },
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
  },
  themeConfig: {
    logo: '/assets/icon.svg',
    nav: [
      { text: 'Connect', link: '/connect' },
      { text: 'Playground', link: '/playground' },
      { text: 'Guide', link: '/guide' },
      { text: 'Reference', link: '/reference' },
    ],
    sidebar: SIDEBAR,
    // Every page has tables or code, which need the room: the headings are listed in the bar at the top.
    aside: false,
    outline: { level: [2, 3], label: 'On this page' },
    search: { provider: 'local' },
  },
  transformHtml(html, _id, { page }) {
    // VitePress leaves this page to its script.
    if (page === '404.md') return html.replace('</body>', `${NOT_FOUND}</body>`);
    // VitePress has two of its own, which the policy of an app forbids, and which its script sets all the same.
    return getPageKind(toPath(page)) === 'app' ? html.replace(/ style="[^"]*"/g, '') : undefined;
  },
});

const toPath = (page: string): string => `/${page.replace(/(^index)?\.md$/, '')}`;
