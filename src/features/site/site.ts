// Spec §4.1: documentation pages, loaded once: what is not in the map cannot be asked for.
import { readdir, readFile } from 'node:fs/promises';
import { extname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Log } from '../../core/log.ts';
import type { Reply } from '../../core/message.ts';

export interface Site {
  /** The page at exactly this path, as it was sent: nothing is decoded or resolved. */
  find(path: string): Reply | undefined;
  /** The page for people who ask for what is not there. */
  notFoundPage(): Reply | undefined;
}

export interface SiteOptions {
  readonly baseUrl: string;
  readonly log: Log;
  /** Where `npm run build` leaves the pages. */
  readonly folder?: string;
}

const BUILT = fileURLToPath(new URL('../../../dist/site', import.meta.url));

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
};

/** No script, nothing from elsewhere, no frame. */
const CONTENT_SECURITY_POLICY =
  "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** `{base_url}` in a page becomes BASE_URL. */
const PLACEHOLDER = '{base_url}';

export async function createSite({ baseUrl, log, folder = BUILT }: SiteOptions): Promise<Site> {
  const pages = new Map<string, Reply>();
  for (const file of await filesIn(folder, log)) {
    const type = TYPES[extname(file)];
    if (type === undefined) continue;
    const text = await readFile(join(folder, file), 'utf8');
    pages.set(pathOf(file), page(text.replaceAll(PLACEHOLDER, escapeHtml(baseUrl)), type));
  }
  const notFound = pages.get('/404');

  return {
    find: (path) => (path === '/404' ? undefined : pages.get(path)),
    notFoundPage: () => notFound && { ...notFound, status: 404 },
  };
}

async function filesIn(folder: string, log: Log): Promise<readonly string[]> {
  try {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    return entries
      .filter((entry) => entry.isFile())
      .map((entry) => relative(folder, join(entry.parentPath, entry.name)));
  } catch (cause) {
    log.info('There are no documentation pages to serve; npm run build makes them.', { cause });
    return [];
  }
}

/** `index.html` is `/`, `settings.html` is `/settings`, `assets/x.css` is `/assets/x.css`. */
function pathOf(file: string): string {
  const path = `/${file.split(sep).join('/')}`;
  return path === '/index.html' ? '/' : path.replace(/\.html$/, '');
}

function page(body: string, type: string): Reply {
  return {
    status: 200,
    headers: {
      'Content-Type': type,
      'Content-Security-Policy': CONTENT_SECURITY_POLICY,
      'Cache-Control': 'public, max-age=300',
      Vary: 'Accept',
    },
    body,
  };
}

const escapeHtml = (text: string): string =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
