// §4.1: finds the endpoints or the page of a path, which is matched character by character in its canonical form.

import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { fail, type GatewayError } from '../../errors/gateway-error.ts';
import { decodePercent } from '../../platform/json.ts';
import type { Endpoint } from '../endpoint/endpoint.ts';
import { type GatewayRequest, getHeader, type Reply } from '../endpoint/message.ts';
import { toLogMembers } from '../endpoint/render-error.ts';

/** The endpoints of one path. */
interface Route {
  readonly endpoints: ReadonlyMap<string, Endpoint>;
  /** Value of the `Allow` header. */
  readonly allow: string;
  /** True if exempt from the Host check. */
  readonly isProbe: boolean;
  /** True if it is also served while all connections are busy. */
  readonly isServedWhenBusy: boolean;
  /** True if pages may not call it by script, nor pages of other origins by a form. Programs may. */
  readonly refusesScripts: boolean;
  /** True if no page from another origin may call it. */
  readonly isForOwnPages: boolean;
  /** True if pages of any origin may read it. */
  readonly isForAllOrigins: boolean;
}

export interface RequestDestination {
  /** Undefined for pages and unknown paths. */
  readonly route: Route | undefined;
  /** Value of the metrics' label `route`, from a fixed set. */
  readonly label: string;
  /** A page of the site, for GET and HEAD. */
  readonly page: Reply | undefined;
}

/** The pages by their paths. A path is looked up as sent: no path can lead out of the site. */
export interface Site {
  /** Returns the page or asset at a path; 304 if the client already has it (`If-None-Match`). */
  findPage(path: string, ifNoneMatch?: string): Reply | undefined;
  /** Returns the page for an unknown path; undefined without built pages. */
  getNotFoundPage(): Reply | undefined;
  /** Returns the front page, which replaces an error with this status; undefined without built pages. */
  getFrontPage(status: number): Reply | undefined;
}

export function createRouter(endpoints: readonly Endpoint[], site: Site) {
  /** Compressed pages: each is compressed once, on its first request. Keyed by the bytes that the site keeps. */
  const kept = new WeakMap<Uint8Array, Map<string, Promise<Uint8Array>>>();
  const destinations = new Map<string, RequestDestination>();
  const createDestination = (path: string): RequestDestination => ({
    route: createRoute(path, endpoints),
    label: path,
    page: undefined,
  });
  for (const { path, hasParameter } of endpoints)
    if (hasParameter === undefined) destinations.set(path, createDestination(path));
  const parameterized = endpoints.flatMap(({ path, hasParameter }) => {
    if (hasParameter === undefined) return [];
    const [, start = '', end = ''] = /^([^:]*):[^/]*(.*)$/.exec(path) ?? [];
    return [{ start, end, hasParameter, destination: createDestination(path) }];
  });

  function findRoute(path: string): RequestDestination | undefined {
    const known = destinations.get(path);
    if (known !== undefined) return known;
    for (const { start, end, hasParameter, destination } of parameterized) {
      if (!path.startsWith(start) || !path.endsWith(end)) continue;
      const name = path.slice(start.length, path.length - end.length);
      if (!name.includes('/') && hasParameter(name)) return destination;
    }
    return undefined;
  }

  /** RFC 9110 §8.4, §12.5.3: compresses a page with a content coding that the client accepts. */
  async function compressPage(page: Reply, acceptEncoding: string | undefined): Promise<Reply> {
    const { body, headers } = page;
    // Text, and the 304 for it, which has no type.
    if (!/^(text\/|image\/svg)|^$/.test(headers?.['Content-Type'] ?? '')) return page;
    const vary = headers?.Vary ? `${headers.Vary}, Accept-Encoding` : 'Accept-Encoding';
    const varied = { ...page, headers: { ...headers, Vary: vary } };
    const weights = readWeights(acceptEncoding);
    const chosen = CODINGS.find(([coding]) => (weights.get(coding) ?? 0) > 0);
    if (!(body instanceof Uint8Array) || body.byteLength < MIN_BYTES || !chosen) return varied;
    const [name, compress] = chosen;
    const byCoding = kept.get(body) ?? new Map<string, Promise<Uint8Array>>();
    kept.set(body, byCoding);
    const compressing = byCoding.get(name) ?? compress(body);
    byCoding.set(name, compressing);
    return {
      ...varied,
      headers: { ...varied.headers, 'Content-Encoding': name },
      body: await compressing,
    };
  }

  return {
    hasEndpoint: (path: string): boolean => findRoute(path) !== undefined,
    findDestination(request: GatewayRequest): RequestDestination {
      const known = findRoute(request.path);
      if (known !== undefined) return known;
      const page = site.findPage(request.path, getHeader(request, 'if-none-match'));
      return page ? { route: undefined, label: '/**', page } : NOWHERE;
    },
    /** Returns the page that replaces an error for a person who opened the address of an MCP endpoint; undefined for programs. */
    findFrontPage(request: GatewayRequest, error: GatewayError): Reply | undefined {
      const { status } = error.row;
      if (!isBrowserByMistake(request) || !FRONT_PAGE_STATUSES.includes(status)) return undefined;
      const page = site.getFrontPage(status);
      const headers = { ...page?.headers, ...error.failure.headers };
      return page && { ...page, headers, ...toLogMembers(error) };
    },
    /** Returns true if the path is also served while all connections are busy. */
    isServedWhenBusy: (path: string): boolean =>
      destinations.get(path)?.route?.isServedWhenBusy === true,
    /** Returns true for the path of a probe, or of the metrics. */
    isProbe: (path: string): boolean => destinations.get(path)?.route?.isProbe === true,
    /**
     * Returns the reply to a request without a route.
     *
     * @throws GatewayError `method_not_allowed`, `bad_request` or `not_found`.
     */
    async servePage(request: GatewayRequest, { page }: RequestDestination): Promise<Reply> {
      const isRead = request.method === 'GET' || request.method === 'HEAD';
      if (page !== undefined && !isRead)
        fail('method_not_allowed', { headers: { Allow: 'GET, HEAD' } });
      const found = page ?? findNotFoundPage(request, site);
      return compressPage(found, getHeader(request, 'accept-encoding'));
    },
  };
}

/** Errors of a request without token or session. Limits and outages have the same reply for all callers. */
const FRONT_PAGE_STATUSES: readonly number[] = [400, 401, 405, 406];

/** Not an MCP client: those send a token, a session ID or `text/event-stream`, or do not prefer HTML. */
function isBrowserByMistake(request: GatewayRequest) {
  const accept = getHeader(request, 'accept');
  return (
    prefersHtml(accept) &&
    !readWeights(accept).has('text/event-stream') &&
    getHeader(request, 'authorization') === undefined &&
    getHeader(request, 'mcp-session-id') === undefined
  );
}

export const NOWHERE: RequestDestination = {
  route: undefined,
  label: 'unmatched',
  page: undefined,
};

function createRoute(path: string, all: readonly Endpoint[]): Route {
  const endpoints = all.filter((endpoint) => endpoint.path === path);
  const listed = endpoints.filter(({ isUnlisted }) => !isUnlisted).map(({ method }) => method);
  const allow = listed.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
  return {
    endpoints: new Map(endpoints.map((endpoint) => [endpoint.method, endpoint])),
    allow: allow.join(', '),
    isProbe: endpoints.some(({ isProbe }) => isProbe),
    isServedWhenBusy: endpoints.some(({ isServedWhenBusy }) => isServedWhenBusy),
    refusesScripts: endpoints.some(({ refusesScripts }) => refusesScripts),
    isForOwnPages: endpoints.some(({ isForOwnPages }) => isForOwnPages),
    isForAllOrigins: endpoints.some(({ isForAllOrigins }) => isForAllOrigins),
  };
}

/**
 * Returns a page if `Accept` prefers HTML.
 *
 * @throws GatewayError `bad_request` or `not_found`.
 */
function findNotFoundPage(request: GatewayRequest, site: Site): Reply {
  if (decodePercent(request.path) === undefined)
    fail('bad_request', { details: 'The path of the URL is not encoded correctly.' });
  const page = prefersHtml(getHeader(request, 'accept')) ? site.getNotFoundPage() : undefined;
  return page ?? fail('not_found');
}

// Content negotiation.

type Compress = (bytes: Uint8Array) => Promise<Uint8Array>;

const brotli = promisify(brotliCompress);

/** In order of preference. Beyond this quality brotli takes ten times as long for a few percent. */
const CODINGS: readonly (readonly [name: string, compress: Compress])[] = [
  ['br', (bytes) => brotli(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } })],
  ['gzip', promisify<Uint8Array, Uint8Array>(gzip)],
];

/** A smaller body fits into a packet or two without compression. */
const MIN_BYTES = 1024;

/** RFC 9110 §12.5.1: returns true for a browser, false for a program. */
export function prefersHtml(accept: string | undefined): boolean {
  const weights = readWeights(accept);
  const html = weights.get('text/html') ?? 0;
  return html > (weights.get('application/json') ?? 0);
}

/** Reads the weights of an `Accept…` header (RFC 9110 §12.4.2) by its entries in lower case. */
function readWeights(accept = ''): ReadonlyMap<string, number> {
  const ranges = accept.toLowerCase().split(',');
  return new Map(
    ranges.map((range) => {
      const [type = '', ...parameters] = range.split(';').map((part) => part.trim());
      const q = parameters.find((parameter) => parameter.startsWith('q='));
      return [type, q === undefined ? 1 : Number(q.slice(2)) || 0];
    }),
  );
}

// §4.1: turns a path as received into the canonical one.

/** Decodes nothing and joins no slashes, so that a path that a proxy may read differently leads nowhere. */
type CanonicalizePath = (path: string) => string;

/**
 * Creates the function that removes the slash after an MCP endpoint, and the path of BASE_URL: at the start, if the proxy in
 * front leaves it, and in well-known addresses, which begin at the host (RFC 8414 §3.1, RFC 9728 §3.1).
 */
export function createCanonicalizePath(
  baseUrl: string,
  hasEndpoint: (path: string) => boolean,
): CanonicalizePath {
  const basePath = new URL(baseUrl).pathname.replace(/\/$/, '');
  if (basePath === '') return removeSlash;

  return function canonicalizePath(path) {
    const literal = removeSlash(path);
    // If a proxy has removed the path of BASE_URL, the rest may begin with the same segment.
    if (hasEndpoint(literal)) return literal;
    const below = removeBasePath(path, basePath);
    // Proxies block /metrics by its public path: there must be no other path to it.
    return below === undefined || below === METRICS ? literal : removeSlash(below);
  };
}

const METRICS = '/metrics';

/** The documents too, since clients append the path of the endpoint to theirs. */
const MCP_WITH_SLASH = /^(?:\/\.well-known\/oauth-protected-resource)?\/mcp\/(?:[^/]+\/)?$/;

const removeSlash: CanonicalizePath = (path) =>
  path.endsWith('/') && MCP_WITH_SLASH.test(path) ? path.slice(0, -1) : path;

const METADATA =
  /^\/\.well-known\/(?:oauth-protected-resource|oauth-authorization-server|openid-configuration)(?=\/)/;

/** Undefined if the path of BASE_URL is neither at the start nor after the name of a document. */
function removeBasePath(path: string, basePath: string) {
  const [start = ''] = METADATA.exec(path) ?? [];
  const rest = path.slice(start.length);
  if (rest !== basePath && !rest.startsWith(`${basePath}/`)) return undefined;
  return start + rest.slice(basePath.length) || '/';
}
