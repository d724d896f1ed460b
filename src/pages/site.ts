// §4.1: serves the site: lists its files at startup, reads each on its first request, and serves it from memory.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname } from 'node:path';
import type { Endpoint } from '../http/endpoint/endpoint.ts';
import {
  createEtag,
  createJsonReply,
  createNotModifiedReply,
  matchesEtag,
  type Reply,
  type ReplyHeaders,
} from '../http/endpoint/message.ts';
import type { Site } from '../http/server/router.ts';
import { listTools } from '../mcp/catalog/own-catalog.ts';
import type { ServedCatalog } from '../mcp/catalog/served-catalog.ts';
import { defineFeature, type Gauges } from '../mcp/feature.ts';
import type { ServedFile } from '../mcp/upstream/upstream-config.ts';
import { getErrorCode } from '../platform/error-code.ts';
import { PACKAGE_ROOT, PACKAGE_VERSION } from '../platform/own-files.ts';
import type { Runtime } from '../runtime/runtime.ts';
import {
  METRICS_CONTENT_TYPE,
  type Metrics,
  type StoredCounts,
} from '../telemetry/metrics/metrics.ts';
import { openOperatorsNotes } from './admin.ts';
import { type Logo, OPEN, openSite } from './open-site.ts';
import { createServerCardEndpoints } from './server-card.ts';
import { createFillSlots, type FillSlots, getPageKind, type PageKind } from './slots.ts';

const BUILT_PAGES = new URL('dist/site/', PACKAGE_ROOT);

/** Lists the pages that `npm run build` put into `folder`. Without a build there are none, but the gateway still runs. */
export function createSite(
  { log }: Pick<Runtime, 'log'>,
  {
    baseUrl,
    logoOrigin,
    hasOperatorsPage = false,
  }: {
    readonly baseUrl: string;
    /** Origin of a logo that is hosted elsewhere; pages may load images from this origin. */
    readonly logoOrigin?: string | undefined;
    /** True if there is an operators' page (§22). */
    readonly hasOperatorsPage?: boolean;
  },
  folder = BUILT_PAGES,
): Site {
  const built = listFiles(folder);
  const files = hasOperatorsPage ? built : built.filter(({ path }) => !OPERATORS_FILE.test(path));
  if (files.length === 0)
    log.info('There are no documentation pages to serve; npm run build makes them.');
  // Links are paths below that of BASE_URL, so that pages also work at a different address.
  const basePath = new URL(baseUrl).pathname.replace(/\/+$/, '');
  const fillSlots = createFillSlots({
    base_url: baseUrl,
    base_path: basePath,
    version: PACKAGE_VERSION,
  });
  const unfinished = new Map(files.map((file) => [file.path, file]));
  const finished = new Map<string, Page>();

  /** Read and filled in on the first request: all of them would take a fifth of the startup time. */
  function getPage(path: string): Page | undefined {
    const file = unfinished.get(path);
    const bytes = file && readIfPresent(() => readFileSync(file.url));
    if (file !== undefined && bytes !== undefined) {
      finished.set(path, createPage(file, bytes, fillSlots, logoOrigin));
      // A failed read is tried again on the next request.
      unfinished.delete(path);
    }
    return finished.get(path);
  }

  let frontPage: Reply | undefined;

  /** Its scripts derive the page from the address, so it begins with a script that changes that. */
  function findFrontPage(): Reply | undefined {
    const page = getPage(FRONT_PATH);
    if (page === undefined) return undefined;
    const script = `<script>history.replaceState(null, '', ${JSON.stringify(`${basePath}/`)})</script>`;
    const body = page.reply.body.toString('utf8').replace('<head>', `<head>${script}`);
    const policy = createPolicy(getPageKind(FRONT_PATH), body, logoOrigin);
    return {
      status: 200,
      headers: {
        'Content-Security-Policy': policy,
        'Content-Type': HTML,
        'Cache-Control': 'no-store',
        Vary: 'Accept',
      },
      body,
    };
  }

  return {
    findPage(path, ifNoneMatch) {
      const page = path === NOT_FOUND_PATH ? undefined : getPage(path);
      return page && matchesEtag(ifNoneMatch, page.etag)
        ? createNotModifiedReply(page.etag, page.caching)
        : page?.reply;
    },
    getNotFoundPage() {
      const page = getPage(NOT_FOUND_PATH);
      if (page === undefined) return undefined;
      const { ETag: _etag, 'Cache-Control': _caching, ...headers } = page.reply.headers;
      return { ...page.reply, status: 404, headers: { ...headers, Vary: 'Accept' } };
    },
    getFrontPage(status) {
      frontPage ??= findFrontPage();
      return frontPage && { ...frontPage, status };
    },
  };
}

const NOT_FOUND_PATH = '/404';
const FRONT_PATH = '/';
/** The page, and the page that the not-found page's scripts would show at its path. */
const OPERATORS_FILE = /^\/(admin|assets\/admin\.md\.[\w-]+(\.lean)?\.js)$/;
const CALLBACK_PATH = '/playground/callback';

/** Its address has a code, which must not reach other hosts. */
const WITHOUT_REFERRER = { 'Referrer-Policy': 'no-referrer' } as const;

const CACHING = { 'Cache-Control': 'public, max-age=300' } as const;

/**
 * For files that never change under their names. The name has the hash of the built file, which does not cover slots, such as
 * BASE_URL.
 */
const FOR_EVER = { 'Cache-Control': 'public, max-age=31536000, immutable' } as const;
const NAME_WITH_HASH = /^\/assets\/.+\.[\w-]{8}(\.lean)?\.(js|css|webp)$/;

interface Page {
  readonly etag: string;
  readonly caching: ReplyHeaders;
  readonly reply: Reply & { readonly headers: ReplyHeaders; readonly body: Buffer };
}

function createPage(
  { path, type }: SiteFile,
  bytes: Buffer,
  fillSlots: FillSlots,
  logoOrigin: string | undefined,
): Page {
  // Text may have slots to fill in.
  const body = type.includes('charset') ? Buffer.from(fillSlots(bytes.toString('utf8'))) : bytes;
  const isFinal = NAME_WITH_HASH.test(path) && body.equals(bytes);
  const etag = createEtag(body);
  const policy = type === HTML && {
    'Content-Security-Policy': createPolicy(getPageKind(path), body.toString('utf8'), logoOrigin),
  };
  const caching = isFinal ? FOR_EVER : CACHING;
  const headers = {
    ...policy,
    ...(path === CALLBACK_PATH && WITHOUT_REFERRER),
    'Content-Type': type,
    ...caching,
    ETag: etag,
  };
  return { etag, caching, reply: { status: 200, headers, body } };
}

// §4.12: the content security policy of a page of the site.

/** Code in pages is coloured by style attributes; the theme's style sheets have `data:` images. */
const DIRECTIVES: Readonly<Record<PageKind, readonly string[]>> = {
  documentation: ["style-src-attr 'unsafe-inline'"],
  // All other pages from the gateway refuse to be framed: the only frame left is the one for apps (open-site.ts).
  app: ["connect-src 'self'", "frame-src 'self'"],
};

/**
 * `html` as sent: its inline scripts, and no others, are allowed by their hashes. `logoOrigin` is the logo's, if apps load it from
 * another host.
 */
function createPolicy(kind: PageKind, html: string, logoOrigin?: string): string {
  return [
    "default-src 'none'",
    ["script-src 'self'", ...hashInlineScripts(html)].join(' '),
    "style-src 'self'",
    ...DIRECTIVES[kind],
    ["img-src 'self' data:", ...(kind === 'app' && logoOrigin ? [logoOrigin] : [])].join(' '),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

const INLINE_SCRIPT = /<script(?![^>]*\ssrc=)[^>]*>([\s\S]*?)<\/script>/g;

const hashInlineScripts = (html: string): readonly string[] =>
  [...html.matchAll(INLINE_SCRIPT)].map(
    ([, script = '']) => `'sha256-${createHash('sha256').update(script).digest('base64')}'`,
  );

interface SiteFile {
  /** The path where it is served: `/` for index.html, `/settings` for settings.html, else the path of the file. */
  readonly path: string;
  /** Value of Content-Type. */
  readonly type: string;
  readonly url: URL;
}

const HTML = 'text/html; charset=utf-8';

/** File types of the site; others are not served. */
const TYPES: Readonly<Record<string, string>> = {
  '.html': HTML,
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.webp': 'image/webp',
  '.ico': 'image/x-icon',
};

/** Lists the served files of a folder and its subfolders; none if there is no such folder. */
const listFiles = (folder: URL): readonly SiteFile[] =>
  listNames(folder).flatMap((name) => {
    const type = TYPES[extname(name)];
    return type === undefined ? [] : [{ path: toPath(name), type, url: new URL(name, folder) }];
  });

/** Uses the types of directory entries: with `recursive` alone, Node asks the system for the type of each. */
const listNames = (folder: URL): readonly string[] =>
  (readIfPresent(() => readdirSync(folder, { withFileTypes: true })) ?? []).flatMap((entry) =>
    entry.isDirectory()
      ? listNames(new URL(`${entry.name}/`, folder)).map((name) => `${entry.name}/${name}`)
      : [entry.name],
  );

/** Another build may have removed it since it was listed. */
function readIfPresent<Content>(read: () => Content): Content | undefined {
  try {
    return read();
  } catch (error) {
    if (getErrorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

const toPath = (name: string): string =>
  name === 'index.html' ? '/' : `/${name.replace(/\.html$/, '')}`;

// The features of this folder: records about people for operators, and the site with the operators' page (§22).

/** Records about people, for operators; undefined without operators. */
export const operatorsNotes = defineFeature({
  name: 'notes for operators',
  open: (
    runtime,
    { findIssuerOf }: { readonly findIssuerOf: Parameters<typeof openOperatorsNotes>[1] },
  ) => {
    const operated = openOperatorsNotes(runtime, findIssuerOf);
    return { gives: { operated }, ...(operated?.calls && { close: operated.calls.close }) };
  },
});

/** Facts for pages, and for clients before they connect. */
export const site = defineFeature({
  name: 'site',
  open(
    runtime,
    {
      logo,
      servedFile,
      connections,
      catalog,
      hasPaths,
    }: {
      readonly logo: Logo | undefined;
      readonly servedFile: ServedFile;
      /** Undefined if no user can connect servers. */
      readonly connections: object | undefined;
      /** The catalogue of `/mcp`. */
      readonly catalog: ServedCatalog;
      /** Users see what each path costs. */
      readonly hasPaths: boolean;
    },
  ) {
    const { getPublicTools, endpoints } = openSite(runtime, logo, () => listTools(catalog), {
      hasConnections: () =>
        connections !== undefined && servedFile.listConnectionServers().length > 0,
      hasPaths,
    });
    return {
      gives: { getPublicTools },
      endpoints: [...endpoints, ...createServerCardEndpoints(runtime.config, servedFile)],
    };
  },
});

// §4.2, §4.3, §4.11: liveness, readiness and metrics.

/** Each check resolves if the dependency is available, and rejects otherwise. */
export const createHealthEndpoints = (
  checks: Readonly<Record<string, () => Promise<void>>>,
  isShuttingDown: () => boolean,
): readonly Endpoint[] => [
  // §4.2. Needs no dependency.
  {
    ...PROBE,
    path: '/health',
    isServedWhenBusy: true,
    handle: () => createJsonReply(200, { status: 'ok', version: PACKAGE_VERSION }, NO_STORE),
  },
  // §4.3: 503 while a check fails or the gateway is shutting down.
  {
    ...PROBE,
    path: '/health/ready',
    async handle() {
      // Only the kind of failure: the endpoint is public, and addresses belong in the log.
      const reports = await Promise.all(
        Object.entries(checks).map(async ([name, check]) => {
          const status = await check().then(
            () => 'ok',
            () => 'unavailable',
          );
          return [name, { status }] as const;
        }),
      );
      const isStopping = isShuttingDown();
      const isReady = !isStopping && reports.every(([, { status }]) => status === 'ok');
      const body = {
        status: isReady ? 'ready' : 'not_ready',
        version: PACKAGE_VERSION,
        checks: Object.fromEntries(reports),
        ...(isStopping && { details: 'The service is shutting down.' }),
      };
      return createJsonReply(isReady ? 200 : 503, body, NO_STORE);
    },
  },
];

const PROBE = { ...OPEN, isProbe: true } as const;

const NO_STORE = { 'Cache-Control': 'no-store' } as const;

// §4.11: the metrics endpoint.

/**
 * If the store cannot answer, the gauge is left out, and the other metrics, needed most during an outage, are still served.
 */
export const createMetricsEndpoints = (
  metrics: Metrics,
  gauges: readonly Gauges[],
): readonly Endpoint[] => [
  {
    ...PROBE,
    path: '/metrics',
    async handle() {
      const [activeSessions, waitingApprovals, connections = []] = await Promise.all([
        readGauge(gauges, 'activeSessions'),
        readGauge(gauges, 'waitingApprovals'),
        readGauge(gauges, 'connections'),
      ]);
      return {
        status: 200,
        headers: { 'Content-Type': METRICS_CONTENT_TYPE, ...NO_STORE },
        body: await metrics.renderOpenMetrics({ activeSessions, waitingApprovals, connections }),
      };
    },
  },
];

/** Undefined if no feature has the gauge, or the store cannot answer. */
async function readGauge<Gauge extends keyof StoredCounts>(
  gauges: readonly Gauges[],
  name: Gauge,
): Promise<StoredCounts[Gauge] | undefined> {
  try {
    return await gauges.find((one) => one[name] !== undefined)?.[name]?.();
  } catch {
    return undefined;
  }
}
