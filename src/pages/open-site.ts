// §4.1, §19: the facts about this gateway that pages show: /site.json, the logo, public tools, the frame of apps.

import { readFile, stat } from 'node:fs/promises';
import { extname } from 'node:path';
import type { Config } from '../config/config.ts';
import type { LogoConfig } from '../config/groups/server.ts';

import { ConfigError } from '../config/problem.ts';
import { IMAGE_TYPES } from '../config/rules.ts';
import type { Endpoint } from '../http/endpoint/endpoint.ts';
import { createJsonReply } from '../http/endpoint/message.ts';
import {
  buildPlaygroundCallbackUrl,
  OPERATORS_CLIENT_ID,
  PLAYGROUND_CLIENT_ID,
} from '../http/endpoint/own-clients.ts';
import { JSONRPC } from '../http/endpoint/render-error.ts';
import type { GetPublicTools } from '../mcp/catalog/catalog.ts';
import { getErrorCode } from '../platform/error-code.ts';
import type { JsonObject } from '../platform/json.ts';
import { PACKAGE_VERSION } from '../platform/own-files.ts';
import type { Runtime } from '../runtime/runtime.ts';

/** For everyone, before a login. */
export const OPEN = { kind: 'open', method: 'GET', errors: JSONRPC } as const;

/** All tools that are visible without a login. */
type ListTools = () => Promise<readonly JsonObject[]>;

export function openSite(
  runtime: Runtime,
  logo: Logo | undefined,
  listTools: ListTools,
  shown: {
    /** True while there is a server that users connect themselves. */
    readonly hasConnections: () => boolean;
    /** §25.2: whether users see what each path costs. */
    readonly hasPaths: boolean;
  },
) {
  const { config } = runtime;
  /** Undefined if strangers see no tools. */
  const getPublicTools = config.site.showsTools
    ? createGetPublicTools(runtime, listTools)
    : undefined;
  const facts = listSiteFacts(config, logo?.url);
  const siteFacts: Endpoint = {
    ...OPEN,
    path: '/site.json',
    async handle() {
      const tools = await getPublicTools?.();
      const connectionsUrl = shown.hasConnections() ? `${facts.baseUrl}/connections` : undefined;
      const pathsUrl = shown.hasPaths ? `${facts.baseUrl}/paths.json` : undefined;
      return createJsonReply(
        200,
        { ...facts, connectionsUrl, pathsUrl, tools },
        { 'Cache-Control': 'public, max-age=60' },
      );
    },
  };
  const endpoints: readonly Endpoint[] = [
    siteFacts,
    APP_FRAME_ENDPOINT,
    ...(logo?.endpoints ?? []),
  ];
  return { endpoints, getPublicTools };
}

/**
 * §4.1, §19.2: the facts that the pages know about this gateway, and the endpoint for programs. Public, and constant until the next
 * start. Undefined members are left out.
 */
function listSiteFacts({ server, auth, oauth, admin }: Config, logo: string | undefined) {
  const { displayName, baseUrl } = server;
  const { mode, endpoints, providerClient } = oauth;
  return {
    name: displayName,
    version: PACKAGE_VERSION,
    baseUrl,
    mcpUrl: `${baseUrl}/mcp`,
    logo,
    /** Undefined without authentication. */
    login: auth.required
      ? {
          /** Host of the provider's login page. */
          provider: new URL(endpoints.authorizationUrl ?? auth.provider.issuer).host,
          mode,
          /** False if the gateway only checks tokens that clients got elsewhere. */
          isOffered:
            mode === 'broker' ||
            [endpoints.authorizationUrl, endpoints.tokenUrl, providerClient.id].every(Boolean),
          clientId: PLAYGROUND_CLIENT_ID,
          /** Undefined without an operators' page. */
          operatorsClientId: admin.groups.length > 0 ? OPERATORS_CLIENT_ID : undefined,
          redirectUri: buildPlaygroundCallbackUrl(baseUrl),
        }
      : undefined,
  };
}

// §19.2: public tools, with SITE_SHOWS_TOOLS=true.

/** Cached: anybody may ask, and it may need requests to servers. */
const KEPT_MS = 60_000;

function createGetPublicTools({ clock, log }: Runtime, listTools: ListTools) {
  let kept: { readonly tools: ReturnType<GetPublicTools>; readonly until: number } | undefined;

  async function load() {
    try {
      const tools = await listTools();
      // Name and description, no schema.
      return tools.flatMap(({ name, title, description }) =>
        typeof name === 'string'
          ? {
              name,
              ...(typeof title === 'string' && { title }),
              ...(typeof description === 'string' && { description }),
            }
          : [],
      );
    } catch (cause) {
      log.warn('The tools for the front page (SITE_SHOWS_TOOLS) cannot be listed.', { cause });
      return undefined;
    }
  }

  return function getPublicTools() {
    if (kept === undefined || clock.now() >= kept.until)
      kept = { tools: load(), until: clock.now() + KEPT_MS };
    return kept.tools;
  };
}

// §19.1: the logo. If it is a file, the gateway serves it, and pages load it only from there.

export interface Logo {
  /** The URL that pages load it from. */
  readonly url: string;
  /** The endpoint of the file, if it is one. */
  readonly endpoints: readonly Endpoint[];
}

const MAX_BYTES = 1_048_576;

/** @throws ConfigError for a file that cannot be read, or is too large. */
export async function createLogo(
  config: LogoConfig | undefined,
  baseUrl: string,
): Promise<Logo | undefined> {
  if (config === undefined) return undefined;
  return {
    url: locateLogo(config, baseUrl),
    endpoints:
      'url' in config ? [] : [createLogoEndpoint(config.file, await readLogo(config.file))],
  };
}

/** The URL that it is loaded from. */
export const locateLogo = (config: LogoConfig, baseUrl: string): string =>
  'url' in config ? config.url : `${baseUrl}/logo`;

async function readLogo(file: string): Promise<Buffer> {
  const shown = JSON.stringify(file);
  try {
    const { size } = await stat(file);
    if (size <= MAX_BYTES) return await readFile(file);
  } catch (error) {
    throw new ConfigError([
      `SERVICE_LOGO_FILE: ${shown} cannot be read (${getErrorCode(error) ?? 'unknown error'}). Set it to the path of an image, or remove it.`,
    ]);
  }
  throw new ConfigError([
    `SERVICE_LOGO_FILE: ${shown} has more than ${MAX_BYTES} bytes. Use a smaller image.`,
  ]);
}

const createLogoEndpoint = (file: string, body: Buffer): Endpoint => ({
  ...OPEN,
  path: '/logo',
  handle: () => ({
    status: 200,
    headers: {
      'Content-Type': IMAGE_TYPES[extname(file).toLowerCase()] ?? 'application/octet-stream',
      // An SVG opened by itself is a page: it must not run anything.
      'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'; sandbox",
      'Cache-Control': 'public, max-age=300',
    },
    body,
  }),
});

// §30.3: the frame where the playground shows an app. Its origin is opaque, however it is opened; its policy, derived from the
// app's declaration, determines what the app can do (ext-apps, "Content Security Policy Enforcement").

/** Limit of each kind, since the size of a header is limited. */
const MAX_DOMAINS = 40;
const MAX_LENGTH = 255;

/** An origin, with `*.` for its subdomains, and a path: nothing that ends a directive or begins another one. */
const DOMAIN =
  /^(?:https?|wss?):\/\/(?:\*\.)?[a-z\d](?:[a-z\d.-]*[a-z\d])?(?::\d{1,5})?(?:\/[\w.~/-]*)?$/i;

const directive = (name: string, ...sources: readonly string[]) =>
  [name, ...(sources.length === 0 ? ["'none'"] : sources)].join(' ');

/**
 * The gateway's own origin is in none of them: an app gets nothing from there except through the playground. A page that the app
 * navigates to is in a frame, too, and so subject to `frame-src`.
 */
function createPolicy(query: URLSearchParams) {
  // Domains that the app declares, one per parameter. Invalid ones are left out, and so not allowed.
  const read = (kind: 'connect' | 'resource' | 'frame' | 'base') =>
    query
      .getAll(kind)
      .slice(0, MAX_DOMAINS)
      .filter((domain) => domain.length <= MAX_LENGTH && DOMAIN.test(domain));
  return [
    "default-src 'none'",
    directive('script-src', "'unsafe-inline'", "'wasm-unsafe-eval'", 'blob:', ...read('resource')),
    directive('style-src', "'unsafe-inline'", ...read('resource')),
    directive('img-src', 'data:', 'blob:', ...read('resource')),
    directive('font-src', 'data:', ...read('resource')),
    directive('media-src', 'data:', 'blob:', ...read('resource')),
    directive('connect-src', ...read('connect')),
    directive('worker-src', 'blob:'),
    directive('frame-src', ...read('frame')),
    directive('base-uri', ...read('base')),
    directive('object-src'),
    directive('form-action'),
    "frame-ancestors 'self'",
    // Forms of apps are handled by scripts, and lead nowhere.
    'sandbox allow-scripts allow-forms',
  ].join('; ');
}

/**
 * Passes messages between the playground and the app, which has its own frame: nothing of this page is in the app's document, and
 * messages that begin with `ui/notifications/sandbox-` stay between the two pages (ext-apps, "Sandbox proxy").
 */
const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="color-scheme" content="light dark">
<title>App</title>
<style>html, body, iframe { width: 100%; height: 100%; margin: 0; border: 0; display: block }</style>
</head>
<body>
<script>
const own = 'ui/notifications/sandbox-';
const isOwn = (data) => typeof data?.method === 'string' && data.method.startsWith(own);
let app;
function show(html) {
  if (app !== undefined || typeof html !== 'string') return;
  app = document.createElement('iframe');
  app.title = 'App';
  app.sandbox = 'allow-scripts allow-forms';
  app.srcdoc = html;
  document.body.append(app);
}
addEventListener('message', ({ source, origin, data }) => {
  if (source === parent && source !== window && origin === location.origin) {
    if (!isOwn(data)) app?.contentWindow.postMessage(data, '*');
    else if (data.method === own + 'resource-ready') show(data.params?.html);
  } else if (app !== undefined && source === app.contentWindow && !isOwn(data)) {
    parent.postMessage(data, location.origin);
  }
});
parent.postMessage({ jsonrpc: '2.0', method: own + 'proxy-ready', params: {} }, location.origin);
</script>
</body>
</html>
`;

const APP_FRAME_ENDPOINT: Endpoint = {
  ...OPEN,
  path: '/playground/app',
  handle: (request) => ({
    status: 200,
    headers: {
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': createPolicy(new URLSearchParams(request.query)),
      'X-Frame-Options': 'SAMEORIGIN',
      'Referrer-Policy': 'no-referrer',
      'Cache-Control': 'public, max-age=300',
    },
    body: PAGE,
  }),
};
