// The documentation site (§4.1): docs/*.md → dist/site, which the gateway serves.
import { defineConfig } from 'vitepress';
import { SLOTS } from '../../src/features/site/slots.ts';
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
  },
  themeConfig: {
    logo: '/assets/icon.svg',
    nav: [
      { text: 'Connect', link: '/clients' },
      { text: 'Guide', link: '/guide' },
      { text: 'Reference', link: '/reference' },
    ],
    sidebar: SIDEBAR,
    outline: { level: [2, 3], label: 'On this page' },
    search: { provider: 'local' },
  },
  // VitePress leaves this page to its script.
  transformHtml: (html, _id, { page }) =>
    page === '404.md' ? html.replace('</body>', `${NOT_FOUND}</body>`) : undefined,
});
