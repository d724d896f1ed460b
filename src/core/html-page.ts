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

/**
 * A choice that cannot be made by a click or key which was meant for something else: the second half
 * of a double click after the window in front went away, a key that was held down. It appears when
 * the pointer, or the keyboard's focus, has been inside the page for a moment, and goes at once when
 * they leave. Before it stands a place that Tab reaches and no click does: a click would leave the
 * focus inside while other windows come and go. Visibility, because a hidden button takes neither
 * clicks nor focus, and without a delay on the way out: a page that lies behind others draws nothing,
 * and must not find its buttons still there.
 */
const CHOICE = `
.before-choice { pointer-events: none; }
.choice { visibility: hidden; }
body:hover .choice, main:focus-within .choice { visibility: visible; transition: visibility 0s .6s; }
@media (hover: none) {
  .choice { animation: appear 0s .6s both; }
  .by-pointer { display: none; }
}
@keyframes appear { from { visibility: hidden; } to { visibility: visible; } }
`;

/** The colours of the documentation pages; `--on-accent` is the text on a primary button. */
const STYLE = `
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif;
  --text: #1a2328; --muted: #55636b; --ground: #fff; --line: #cfdada; --edge: #7b8b8f;
  --accent: #0b5c57; --on-accent: #fff; --danger: #a3241b; }
@media (prefers-color-scheme: dark) { :root {
  --text: #e2e9ea; --muted: #9db0b4; --ground: #12191b; --line: #344548; --edge: #718488;
  --accent: #74cfc4; --on-accent: #0c1f1d; --danger: #ff9d8f; } }
body { margin: 0; min-height: 100vh; background: var(--ground); color: var(--text); }
main { max-width: 30rem; margin: 0 auto; padding: clamp(1.5rem, 10vh, 6rem) 1.25rem 3rem; overflow-wrap: anywhere; }
h1 { margin: 0 0 .75rem; font-size: 1.5rem; line-height: 1.25; text-wrap: balance; }
p { margin: 0 0 1rem; }
dl { margin: 1.5rem 0; border-top: 1px solid var(--line); }
dl div { padding: .75rem 0; border-bottom: 1px solid var(--line); }
dt { font-size: .875rem; color: var(--muted); }
dd { margin: 0; }
code { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: .9375em; }
code + code { margin-left: .75em; }
form { display: flex; flex-wrap: wrap; gap: .75rem; }
button, a.button { font: inherit; padding: .625rem 1.25rem; border: 1px solid var(--edge); border-radius: .375rem;
  background: none; color: inherit; cursor: pointer; flex: 1 1 8rem; }
button.primary { background: var(--accent); border-color: var(--accent); color: var(--on-accent);
  font-weight: 600; }
a.button { display: inline-block; text-decoration: none; }
button:focus-visible, a:focus-visible, p:focus-visible { outline: 3px solid var(--accent);
  outline-offset: 3px; }
.aside { color: var(--muted); font-size: .875rem; }
.warning { color: var(--danger); }
${CHOICE}`;

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

/** `title` is text, `body` and `heading` are HTML. */
export const renderHtmlPage = (
  title: string,
  body: string,
  heading: string = escapeHtml(title),
): HtmlPage => ({
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
<h1>${heading}</h1>
${body}
</main>
</body>
</html>
`,
});
