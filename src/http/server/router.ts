// §4.1: what a path leads to. It is matched character by character, in its canonical form.

import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { fail, type GatewayError } from '../../errors/gateway-error.ts';
import { isPercentDecodable } from '../../platform/json.ts';
import type { Endpoint } from '../endpoint/endpoint.ts';
import { type GatewayRequest, getHeader, type Reply } from '../endpoint/message.ts';
import { toLogMembers } from '../endpoint/render-error.ts';

/** The endpoints of one path. */
interface Route {
  readonly endpoints: ReadonlyMap<string, Endpoint>;
  /** Value of the `Allow` header. */
  readonly allow: string;
  /** Exempt from the Host check. */
  readonly isProbe: boolean;
  /** Served also while all connections are busy. */
  readonly isServedWhenBusy: boolean;
  /** Reached by a browser's own navigation only. */
  readonly isNavigation: boolean;
  /** No page of another origin may call it. */
  readonly isForOwnPages: boolean;
  /** Pages of any origin may read it. */
  readonly isForAllOrigins: boolean;
}

export interface RequestDestination {
  /** Undefined for pages, and for unknown paths. */
  readonly route: Route | undefined;
  /** Value of the metrics' label `route`: from a fixed set, whatever callers ask for. */
  readonly label: string;
  /** A page of the site, for GET and HEAD. */
  readonly page: Reply | undefined;
}

interface ParameterizedDestination {
  readonly destination: RequestDestination;
  /** The parts before the parameter, and behind it. */
  readonly start: string;
  readonly end: string;
  readonly hasParameter: (name: string) => boolean;
}

/** The pages by their paths. A path is looked up as it was sent: there is nothing to escape from. */
export interface Site {
  /** The page or asset at a path; 304 when the caller has it already (`If-None-Match`). */
  findPage(path: string, ifNoneMatch?: string): Reply | undefined;
  /** The page for a path that leads nowhere; undefined without built pages. */
  getNotFoundPage(): Reply | undefined;
  /** The front page, in place of an error with this status; undefined without built pages. */
  getFrontPage(status: number): Reply | undefined;
}

export type Router = ReturnType<typeof createRouter>;

export function createRouter(endpoints: readonly Endpoint[], site: Site) {
  /** Compressed pages, each once, when it is first asked for: keyed by their bytes, which the site keeps as long. */
  const kept = new WeakMap<Uint8Array, Map<string, Promise<Uint8Array>>>();
  const destinations = new Map<string, RequestDestination>();
  /** Those that end in a parameter, by what stands before it. */
  const parameterized = new Map<string, ParameterizedDestination>();
  /** Those with something behind it, by their paths. */
  const enclosed = new Map<string, ParameterizedDestination>();
  for (const { path, hasParameter } of endpoints) {
    const destination = { route: createRoute(path, endpoints), label: path, page: undefined };
    if (hasParameter === undefined) {
      destinations.set(path, destination);
      continue;
    }
    const [start = '', name = ''] = path.split(':');
    const end = name.includes('/') ? name.slice(name.indexOf('/')) : '';
    const found = { destination, start, end, hasParameter };
    if (end === '') parameterized.set(start, found);
    else enclosed.set(path, found);
  }

  function findRoute(path: string): RequestDestination | undefined {
    const known = destinations.get(path);
    if (known !== undefined) return known;
    const at = path.lastIndexOf('/') + 1;
    const found = parameterized.get(path.slice(0, at));
    if (found?.hasParameter(path.slice(at))) return found.destination;
    for (const { start, end, hasParameter, destination } of enclosed.values()) {
      const isThere = path.startsWith(start) && path.endsWith(end);
      if (isThere && hasParameter(path.slice(start.length, -end.length))) return destination;
    }
    return undefined;
  }

  /** RFC 9110 §8.4, §12.5.3: a page of the site in the coding that its caller takes. */
  async function compressPage(page: Reply, acceptEncoding: string | undefined): Promise<Reply> {
    const { body, headers } = page;
    // Text, and the 304 that stands for it, which has no type.
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
    /** In place of an error, for a person who opened the address of an MCP endpoint; undefined for programs. */
    findFrontPage(request: GatewayRequest, error: GatewayError): Reply | undefined {
      const { status } = error.row;
      if (!isBrowserByMistake(request) || !FRONT_PAGE_STATUSES.includes(status)) return undefined;
      const page = site.getFrontPage(status);
      const headers = { ...page?.headers, ...error.failure.headers };
      return page && { ...page, headers, ...toLogMembers(error) };
    },
    /** True if the path is served also while all connections are busy. */
    isServedWhenBusy: (path: string): boolean =>
      destinations.get(path)?.route?.isServedWhenBusy === true,
    /** True for the path of a probe, or of the metrics. */
    isProbe: (path: string): boolean => destinations.get(path)?.route?.isProbe === true,
    /**
     * The reply where there is no route.
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

/** Errors of a request without token and session. Limits and outages answer everybody alike. */
const FRONT_PAGE_STATUSES: readonly number[] = [400, 401, 405, 406];

/** No client of MCP: these name a token, a session or an event stream, or do not prefer HTML. */
function isBrowserByMistake(request: GatewayRequest) {
  const accept = getHeader(request, 'accept');
  return (
    prefersHtml(accept) &&
    !readWeights(accept).has('text/event-stream') &&
    getHeader(request, 'authorization') === undefined &&
    getHeader(request, 'mcp-session-id') === undefined
  );
}

const NOWHERE: RequestDestination = { route: undefined, label: 'unmatched', page: undefined };

/** @throws GatewayError `method_not_allowed`. HEAD is GET without a body. */
export function findEndpoint({ endpoints, allow }: Route, method: string): Endpoint {
  return (
    endpoints.get(method === 'HEAD' ? 'GET' : method) ??
    fail('method_not_allowed', { headers: { Allow: allow } })
  );
}

function createRoute(path: string, all: readonly Endpoint[]): Route {
  const endpoints = all.filter((endpoint) => endpoint.path === path);
  const listed = endpoints.filter(({ isUnlisted }) => !isUnlisted).map(({ method }) => method);
  const allow = listed.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
  return {
    endpoints: new Map(endpoints.map((endpoint) => [endpoint.method, endpoint])),
    allow: allow.join(', '),
    isProbe: endpoints.some(({ isProbe }) => isProbe),
    isServedWhenBusy: endpoints.some(({ isServedWhenBusy }) => isServedWhenBusy),
    isNavigation: endpoints.some(({ isNavigation }) => isNavigation),
    isForOwnPages: endpoints.some(({ isForOwnPages }) => isForOwnPages),
    isForAllOrigins: endpoints.some(({ isForAllOrigins }) => isForAllOrigins),
  };
}

/**
 * A page where `Accept` prefers HTML.
 *
 * @throws GatewayError `bad_request` or `not_found`.
 */
function findNotFoundPage(request: GatewayRequest, site: Site): Reply {
  if (!isPercentDecodable(request.path))
    fail('bad_request', { details: 'The path of the URL is not encoded correctly.' });
  const page = prefersHtml(getHeader(request, 'accept')) ? site.getNotFoundPage() : undefined;
  return page ?? fail('not_found');
}

// What callers accept.

type Compress = (bytes: Uint8Array) => Promise<Uint8Array>;

const brotli = promisify(brotliCompress);

/** The best first. Beyond this quality brotli takes ten times as long for a few percent. */
const CODINGS: readonly (readonly [name: string, compress: Compress])[] = [
  ['br', (bytes) => brotli(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } })],
  ['gzip', promisify<Uint8Array, Uint8Array>(gzip)],
];

/** A smaller body fits into a packet or two as it is. */
const MIN_BYTES = 1024;

/** RFC 9110 §12.5.1, for one question: is the caller a browser, or a program? */
export function prefersHtml(accept: string | undefined): boolean {
  const weights = readWeights(accept);
  const html = weights.get('text/html') ?? 0;
  return html > (weights.get('application/json') ?? 0);
}

/** Reads what a caller accepts (RFC 9110 §12.4.2), in lower case, and how much of 1. */
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
