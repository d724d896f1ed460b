// §30.3: the frame in which the playground shows an app. Its origin is nobody's, whoever opens it and however; an app in it can do
// what its policy says, which is made of what the app declares (ext-apps, "Content Security Policy Enforcement").
import type { Endpoint } from '../http/endpoint/endpoint.ts';
import { JSONRPC } from '../http/endpoint/render-error.ts';

/** What an app declares, as the query of the address has it: each domain is a parameter of its own. */
type ReadDomains = (kind: 'connect' | 'resource' | 'frame' | 'base') => readonly string[];

/** Of each kind: a header has an end. */
const MAX_DOMAINS = 40;
const MAX_LENGTH = 255;

/** An origin, with `*.` for its subdomains, and a path behind it: nothing that ends a directive or begins another one. */
const DOMAIN =
  /^(?:https?|wss?):\/\/(?:\*\.)?[a-z\d](?:[a-z\d.-]*[a-z\d])?(?::\d{1,5})?(?:\/[\w.~/-]*)?$/i;

/** What is no domain is left out, and so not allowed. */
const readDomains =
  (query: URLSearchParams): ReadDomains =>
  (kind) =>
    query
      .getAll(kind)
      .slice(0, MAX_DOMAINS)
      .filter((domain) => domain.length <= MAX_LENGTH && DOMAIN.test(domain));

const directive = (name: string, ...sources: readonly string[]): string =>
  [name, ...(sources.length === 0 ? ["'none'"] : sources)].join(' ');

/**
 * The gateway's own origin is in none of them: an app gets nothing from there but by the playground. A page that the app
 * leads to elsewhere is in a frame, too, and so held to `frame-src`.
 */
const createPolicy = (read: ReadDomains): string =>
  [
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
    // Forms of apps are for their scripts: they lead nowhere.
    'sandbox allow-scripts allow-forms',
  ].join('; ');

/**
 * Passes messages between the playground and the app, which is in a frame of its own: nothing of this page is in the app's
 * document, and what begins with `ui/notifications/sandbox-` is between the two pages alone (ext-apps, "Sandbox proxy").
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

export const APP_FRAME_ENDPOINT: Endpoint = {
  kind: 'open',
  method: 'GET',
  path: '/playground/app',
  errors: JSONRPC,
  handle(request) {
    return {
      status: 200,
      headers: {
        'Content-Type': 'text/html; charset=utf-8',
        'Content-Security-Policy': createPolicy(readDomains(new URLSearchParams(request.query))),
        'X-Frame-Options': 'SAMEORIGIN',
        'Referrer-Policy': 'no-referrer',
        'Cache-Control': 'public, max-age=300',
      },
      body: PAGE,
    };
  },
};
