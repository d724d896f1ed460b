// §4.1: the documentation pages, read once at start and served from memory.
import { escapeHtml } from '../../core/html-page.ts';
import type { Log } from '../../core/log.ts';
import type { Reply } from '../../core/message.ts';
import { PACKAGE_ROOT } from '../../core/own-files.ts';
import { hashSha256 } from '../../core/sha256.ts';
import { PACKAGE_VERSION } from '../../core/version.ts';
import { readPages, type SiteFile } from './read-pages.ts';

/** The pages by their paths. A path is looked up as it was sent: there is nothing to escape from. */
export interface Site {
  /** The page or asset at a path; 304 when the caller has it already (`If-None-Match`). */
  findPage(path: string, ifNoneMatch?: string): Reply | undefined;
  /** The page for a path that leads nowhere; undefined without built pages. */
  getNotFoundPage(): Reply | undefined;
}

export interface SiteOptions {
  /** `BASE_URL`, shown in the pages. */
  readonly baseUrl: string;
  readonly log: Log;
  /** Where `npm run build` put the pages. */
  readonly folder?: URL;
}

const BUILT_PAGES = new URL('dist/site/', PACKAGE_ROOT);

/** Reads the pages. Without a build there are none, and the service runs all the same. */
export async function createSite({
  baseUrl,
  log,
  folder = BUILT_PAGES,
}: SiteOptions): Promise<Site> {
  const files = await readPages(folder);
  if (files.length === 0) {
    log.info('There are no documentation pages to serve; npm run build makes them.');
  }
  const pages = new Map(files.map((file) => [file.path, createPage(file, baseUrl)]));
  const notFoundPage = pages.get(NOT_FOUND_PATH);
  pages.delete(NOT_FOUND_PATH);

  return {
    findPage(path, ifNoneMatch) {
      const page = pages.get(path);
      return page && matchesEtag(ifNoneMatch, page) ? createNotModifiedReply(page) : page?.reply;
    },
    getNotFoundPage: () =>
      notFoundPage && {
        ...notFoundPage.reply,
        status: 404,
        headers: { ...PAGE_HEADERS, Vary: 'Accept' },
      },
  };
}

const NOT_FOUND_PATH = '/404';

/** No script and nothing foreign runs in a page, and none may be framed. */
const PAGE_HEADERS = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy':
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
} as const;

const CACHING = { 'Cache-Control': 'public, max-age=300' } as const;

interface Page {
  readonly etag: string;
  readonly reply: Reply;
}

function createPage({ type, bytes }: SiteFile, baseUrl: string): Page {
  const isPage = type === PAGE_HEADERS['Content-Type'];
  const body = isPage ? Buffer.from(fillPlaceholders(bytes.toString('utf8'), baseUrl)) : bytes;
  const etag = `"${hashSha256(body).slice(0, 27)}"`;
  const headers = { ...(isPage && PAGE_HEADERS), 'Content-Type': type, ...CACHING, ETag: etag };
  return { etag, reply: { status: 200, headers, body } };
}

/** Links are paths below BASE_URL's, so that pages also work by an address that is not BASE_URL. */
function fillPlaceholders(html: string, baseUrl: string): string {
  const values: Readonly<Record<string, string>> = {
    base_url: baseUrl,
    base_path: new URL(baseUrl).pathname.replace(/\/+$/, ''),
    version: PACKAGE_VERSION,
  };
  return html.replace(/\{(base_url|base_path|version)\}/g, (_, name: string) =>
    escapeHtml(values[name] ?? ''),
  );
}

/** RFC 9110 §13.1.2: weak comparison with each entry of the list. */
const matchesEtag = (ifNoneMatch: string | undefined, { etag }: Page): boolean =>
  ifNoneMatch?.split(',').some((entry) => ['*', etag, `W/${etag}`].includes(entry.trim())) ?? false;

const createNotModifiedReply = ({ etag }: Page): Reply => ({
  status: 304,
  headers: { ...CACHING, ETag: etag },
});
