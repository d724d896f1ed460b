// Pages that are made for one request: no script, nothing from elsewhere, no frame around them.
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

const STYLE_HASH = createHash('sha256').update(PAGE_STYLE).digest('base64');

/**
 * No form-action: browsers hold every redirect after the form to it, up to the client's own
 * address, which may be any.
 */
const HEADERS = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; base-uri 'none'; frame-ancestors 'none'`,
  'Cache-Control': 'no-store',
} as const;

export interface HtmlPage {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface HtmlPageParts {
  /** HTML above the heading. */
  readonly before?: string;
  /** HTML, where the heading is more than the title. */
  readonly heading?: string;
}

/** `title` is text, `body` is HTML. */
export const renderHtmlPage = (
  title: string,
  body: string,
  { before = '', heading = escapeHtml(title) }: HtmlPageParts = {},
): HtmlPage => ({
  headers: HEADERS,
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
</main>
</body>
</html>
`,
});
