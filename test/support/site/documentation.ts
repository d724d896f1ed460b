// Which pages of the site are documentation.
import { readdirSync } from 'node:fs';

/** What is `index` or has an app has tests of its own; the others are read in the repository only. */
const NO_PAGES = /^(index|playground|admin)\.md$|^(decisions|examples|playground|\.vitepress)[\\/]/;

/** Their paths below BASE_URL. */
export const DOCUMENTATION: readonly string[] = readdirSync(
  new URL('../../../docs/', import.meta.url),
  { recursive: true, encoding: 'utf8' },
)
  .filter((name) => name.endsWith('.md') && !NO_PAGES.test(name))
  .map((name) => `/${name.replaceAll('\\', '/').replace(/\.md$/, '')}`)
  .sort();
