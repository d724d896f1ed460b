// Pages that are made for one request: no script, nothing from elsewhere, no frame around them.
import { createHash } from 'node:crypto';

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (sign) => ENTITIES[sign] ?? sign);

const STYLE = `
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif; --line: #8888; }
body { margin: 0; }
main { max-width: 30rem; margin: 8vh auto; padding: 0 1.25rem; overflow-wrap: anywhere; }
h1 { font-size: 1.375rem; line-height: 1.25; text-wrap: balance; }
dl { margin: 1.25rem 0; border-top: 1px solid var(--line); }
dl div { padding: .6rem 0; border-bottom: 1px solid var(--line); }
dt { font-size: .875rem; opacity: .75; }
dd { margin: 0; }
code { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: .9375em; }
form { display: flex; flex-wrap: wrap; gap: .75rem; margin-top: 1.5rem; }
button { font: inherit; padding: .6rem 1.25rem; border: 1px solid var(--line); border-radius: .375rem;
  background: none; color: inherit; cursor: pointer; flex: 1 1 8rem; }
button.primary { background: #0b5c57; border-color: #0b5c57; color: #fff; }
button:focus-visible { outline: 3px solid #2aa198; outline-offset: 2px; }
`;

const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64');

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

/** `title` is text, `body` is HTML. */
export const htmlPage = (title: string, body: string): HtmlPage => ({
  headers: HEADERS,
  body: `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="same-origin">
<title>${escapeHtml(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>${escapeHtml(title)}</h1>
${body}
</main>
</body>
</html>
`,
});
