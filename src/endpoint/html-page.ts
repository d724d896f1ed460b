// Pages that are made for one request: nothing from elsewhere, no frame around them, no script but one of their own.
import { createHash } from 'node:crypto';
import { PAGE_STYLE } from './html-page-style.ts';

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (sign) => ENTITIES[sign] ?? sign);

/** A source of a content security policy: what has this hash, and nothing else. */
const hashSource = (text: string): string =>
  `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

const STYLE_SOURCE = hashSource(PAGE_STYLE);

/**
 * No form-action: browsers hold every redirect after the form to it, up to the client's own
 * address, which may be any.
 */
const createPolicy = (script: string | undefined): string =>
  [
    "default-src 'none'",
    ...(script === undefined ? [] : [`script-src ${hashSource(script)}`]),
    `style-src ${STYLE_SOURCE}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');

export interface HtmlPage {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface HtmlPageParts {
  /** HTML above the heading. */
  readonly before?: string;
  /** HTML, where the heading is more than the title. */
  readonly heading?: string;
  /** JavaScript, run once the page is there. It is the same for all requests: nothing of one is written into it. */
  readonly script?: string;
}

/** `title` is text, `body` is HTML. */
export const renderHtmlPage = (
  title: string,
  body: string,
  { before = '', heading = escapeHtml(title), script }: HtmlPageParts = {},
): HtmlPage => ({
  headers: {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': createPolicy(script),
    'Cache-Control': 'no-store',
  },
  body: `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="same-origin">
<title>${escapeHtml(title)}</title>
<style>${PAGE_STYLE}</style>
</head>
<body>
<main>
${before}
<h1>${heading}</h1>
${body}
</main>${script === undefined ? '' : `\n<script>${script}</script>`}
</body>
</html>
`,
});

// Drawings inside a page: it loads none. They say nothing that the text beside them does not.

const draw = (viewBox: string, size: number, paths: string): string =>
  `<svg viewBox="${viewBox}" width="${size}" height="${size}" aria-hidden="true" focusable="false">${paths}</svg>`;

const STROKE =
  'fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"';

export const ICONS = {
  /** The gate, as on the site. */
  postern: draw(
    '0 0 32 32',
    28,
    '<path d="M5 30V15a11 11 0 0 1 22 0v15z" fill="#0b5c57"/><path d="M10 30V16a6 6 0 0 1 12 0v14z" fill="#e9f4f2"/><circle cx="18.5" cy="22" r="1.5" fill="#0b5c57"/>',
  ),
  check: draw('0 0 16 16', 16, `<path d="M3 8.5 6.5 12 13 4.5" ${STROKE}/>`),
  warning: draw('0 0 24 24', 24, `<path d="M12 5v9m0 5v.01" ${STROKE}/>`),
} as const;
