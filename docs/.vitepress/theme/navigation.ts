// Which links the site follows by itself, and which are left to the browser.
import { type Router, withBase } from 'vitepress';
import { getPageKind } from '../../../src/pages/slots.ts';

/** VitePress's own table: names of pages, and the versions of their scripts. */
declare const __VP_HASH_MAP__: Readonly<Record<string, string>>;

/**
 * The server answers what is no page of the site, with a 404 page or an endpoint such as `/health`. A page of
 * another kind has a policy of its own, which only comes with the page.
 */
export function watchNavigation(router: Router): void {
  if (import.meta.env.SSR || import.meta.env.DEV) return;

  router.onBeforeRouteChange = (to) => {
    const path = pathOf(to);
    if (path === location.pathname) return true;
    // Where the 404 page came first, VitePress still expects to complete what the server sent.
    if (router.route.component !== null && isReachable(path)) return true;
    location.assign(to);
    return false;
  };
  // Only the 404 page gets here for a path that is no page. It shows itself as long as no page is set.
  router.onBeforePageLoad = (to) => isPage(pathOf(to));
  router.onAfterRouteChange = (to) => {
    // A newer version is served than the one that this page came from, and its files have other names.
    if (router.route.data.isNotFound && isPage(pathOf(to)) && !wasReloaded()) location.reload();
  };
}

const pathOf = (href: string): string => new URL(href, location.href).pathname;

const isReachable = (path: string): boolean =>
  isPage(path) && getPageKind(toPage(path)) === getPageKind(toPage(location.pathname));

/** A page that the server does not serve, such as that of operators where there are none; its script is not served either. */
const missingPath =
  import.meta.env.SSR || getNavigation()?.responseStatus !== 404 ? undefined : location.pathname;

const isPage = (path: string): boolean => {
  if (path === missingPath || !path.startsWith(withBase('/'))) return false;
  const name = toPage(path).slice(1).replaceAll('/', '_');
  return Object.hasOwn(__VP_HASH_MAP__, `${name || 'index'}.md`);
};

/** The path below BASE_URL. */
const toPage = (path: string): string => path.slice(withBase('/').length - 1);

const wasReloaded = (): boolean => getNavigation()?.type === 'reload';

function getNavigation(): PerformanceNavigationTiming | undefined {
  const [entry] = performance.getEntriesByType('navigation');
  return entry instanceof PerformanceNavigationTiming ? entry : undefined;
}
