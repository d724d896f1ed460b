// What a page of the site may do. The theme asks as well: a page of another kind needs a policy of its own, so
// the browser has to load it anew.

/** Documentation shows text; an app calls the gateway. */
export type PageKind = 'documentation' | 'app';

/** By path below BASE_URL. Every other page is documentation. */
const APPS: ReadonlySet<string> = new Set<string>([
  '/',
  '/playground',
  '/playground/callback',
  '/admin',
]);

export const getPageKind = (path: string): PageKind => (APPS.has(path) ? 'app' : 'documentation');
