// Renders HTML pages for one request: no external resources, no framing, and no script except an inline one.
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

/** A source of a Content-Security-Policy: allows only content with this hash. */
const hashSource = (text: string) =>
  `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

/**
 * Without form-action: browsers apply it to every redirect after the form is submitted, including the last one, to the client's
 * redirect URI, which can be any URL.
 */
const createPolicy = (script: string | undefined) =>
  [
    "default-src 'none'",
    ...(script === undefined ? [] : [`script-src ${hashSource(script)}`]),
    `style-src ${STYLE_SOURCE}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');

/** `title` is text, `body` is HTML. */
export const renderHtmlPage = (
  title: string,
  body: string,
  {
    before = '',
    heading = escapeHtml(title),
    script,
  }: {
    /** HTML above the heading. */
    readonly before?: string;
    /** HTML, if the heading differs from the title. */
    readonly heading?: string;
    /** JavaScript, run after the page has loaded. It must not contain data of a request, since it is the same for all. */
    readonly script?: string;
  } = {},
) => ({
  headers: {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': createPolicy(script),
    'Cache-Control': 'no-store',
    // URLs contain secrets. With no referrer at all, forms would have the origin `null`.
    'Referrer-Policy': 'same-origin',
  },
  body: `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
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

// Inline SVG drawings. They are decorative: the text next to them says everything.

const draw = (viewBox: string, size: number, paths: string) =>
  `<svg viewBox="${viewBox}" width="${size}" height="${size}" aria-hidden="true" focusable="false">${paths}</svg>`;

const STROKE =
  'fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round"';

export const ICONS = {
  /** The same logo as on the website. */
  postern: draw(
    '0 0 32 32',
    28,
    '<path d="M5 30V15a11 11 0 0 1 22 0v15z" fill="#0b5c57"/><path d="M10 30V16a6 6 0 0 1 12 0v14z" fill="#e9f4f2"/><circle cx="18.5" cy="22" r="1.5" fill="#0b5c57"/>',
  ),
  check: draw('0 0 16 16', 16, `<path d="M3 8.5 6.5 12 13 4.5" ${STROKE}/>`),
  warning: draw('0 0 24 24', 24, `<path d="M12 5v9m0 5v.01" ${STROKE}/>`),
  done: draw('0 0 24 24', 24, `<path d="M5 12.5 10 17.5 19.5 7" ${STROKE}/>`),
} as const;

// The style of pages rendered for one request. All of it is inline.

/**
 * Protects a choice against clicks and keys meant for something else: the second half of a double click after a window in front
 * went away, or a key that is held down. The choice appears when the page is in front (indicated by a class that the page's
 * script sets) and the pointer or the keyboard focus has been inside it for a moment, and disappears as soon as one of these
 * ends. Until then, images of the buttons take their place, which Tab reaches but clicks do not: a click would leave the focus
 * inside while other windows come and go. They are pale only while the page is not in front: in front, a moment is all that is
 * missing, and buttons that look disabled would be taken for a choice that is not offered. Uses visibility, because a hidden
 * button takes neither clicks nor focus. Uses an animation, because a transition needs an earlier style, which a page that was
 * never rendered does not have.
 */
const CHOICE = `
.choice-place { display: grid; }
.choice-place > * { grid-area: 1 / 1; display: flex; flex-wrap: wrap; gap: .75rem; }
.before-choice { pointer-events: none; border-radius: .5rem; }
:root:not(.in-front) .before-choice .button { opacity: .45; }
.choice { visibility: hidden; }
.choice button:not(.primary):not(:hover) { background: var(--card); }
.in-front body:hover .choice, .in-front main:focus-within .choice { animation: appear 0s .6s both; }
@media (hover: none) { .in-front .choice { animation: appear 0s .6s both; } }
@media (scripting: none) { .choice-place { display: none; } }
@keyframes appear { from { visibility: hidden; } to { visibility: visible; } }
`;

/** The colours of the website; `--on-accent` is the text colour of a primary button. */
const PAGE_STYLE = `
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", sans-serif;
  --text: #1a2328; --muted: #55636b; --ground: #f2f6f6; --card: #fff; --line: #dde6e6; --edge: #7b8b8f;
  --accent: #0b5c57; --on-accent: #fff; --tint: #e9f4f2; --danger: #a3241b; --danger-tint: #fdf0ee;
  --shadow: 0 1px 2px rgb(16 40 40 / 6%), 0 12px 32px -12px rgb(16 40 40 / 18%); }
@media (prefers-color-scheme: dark) { :root {
  --text: #e2e9ea; --muted: #9db0b4; --ground: #0d1315; --card: #161f21; --line: #2b393c; --edge: #718488;
  --accent: #74cfc4; --on-accent: #0c1f1d; --tint: #1b2f2e; --danger: #ff9d8f; --danger-tint: #331d1a;
  --shadow: none; } }
* { box-sizing: border-box; }
body { margin: 0; min-height: 100vh; background: var(--ground); color: var(--text);
  padding: clamp(0rem, 4vh, 4rem) 1rem 2rem; }
main { max-width: 32rem; margin: 0 auto; padding: 2rem 2.25rem; background: var(--card);
  border: 1px solid var(--line); border-radius: .875rem; box-shadow: var(--shadow); overflow-wrap: anywhere; }
svg { display: block; flex: none; }
h1 { margin: 0 0 .75rem; font-size: 1.5rem; line-height: 1.25; letter-spacing: -.015em; text-wrap: balance; }
p { margin: 0 0 1rem; }
main > :last-child { margin-bottom: 0; }
.brand { display: flex; align-items: center; gap: .625rem; margin-bottom: 1.25rem; font-weight: 600; font-size: .9375rem; }
.mark { width: 3rem; height: 3rem; display: grid; place-items: center; margin-bottom: 1.25rem; border-radius: 50%;
  background: var(--danger-tint); color: var(--danger); }
.mark.good { background: var(--tint); color: var(--accent); }
.entry { padding: 1.25rem 0; border-top: 1px solid var(--line); }
.entry-head { display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: .25rem .75rem; }
.entry-head h2 { margin: 0; font-size: 1.0625rem; line-height: 1.4; }
.entry > p { margin: .125rem 0 0; }
.entry > .warning { margin-top: .75rem; font-size: .9375rem; }
.entry > dl { margin: .75rem 0 0; border-top: 0; }
.entry > dl div { grid-template-columns: 6.75rem 1fr; border-bottom: 0; padding: .125rem 0; }
.entry + .links { margin-top: 0; }
.entry .actions { margin-top: 1rem; }
.entry .actions button { flex: 0 1 auto; min-height: 2.5rem; padding: .4375rem 1.125rem; font-size: .9375rem; }
@media (pointer: coarse) { .entry .actions button { min-height: 2.75rem; } }
.state { padding: .125rem .625rem; border-radius: 1rem; font-size: .8125rem; font-weight: 500; border: 1px solid var(--line);
  color: var(--muted); }
.state.good { background: var(--tint); border-color: var(--tint); color: var(--accent); }
.state.bad { background: var(--danger-tint); border-color: var(--danger-tint); color: var(--danger); }
.actions { display: flex; flex-wrap: wrap; gap: .75rem; }
.links { display: flex; flex-wrap: wrap; gap: .5rem 1.5rem; margin: 1.25rem 0 0; padding-top: 1.25rem; border-top: 1px solid var(--line);
  font-size: .9375rem; }
a:not(.button) { color: var(--accent); text-underline-offset: .1875em; }
.grants { list-style: none; margin: 1.125rem 0; padding: 1rem 1.125rem; border-radius: .625rem; background: var(--tint); }
.grants li { display: flex; gap: .625rem; }
.grants li + li { margin-top: .5rem; }
.grants svg { margin-top: .25rem; color: var(--accent); }
.grants .aside { display: block; }
form + form, section + form { margin-top: 1.125rem; }
dl { margin: 1.125rem 0; border-top: 1px solid var(--line); font-size: .875rem; }
dl div { display: grid; grid-template-columns: 9.75rem 1fr; gap: .125rem 1rem; padding: .5rem 0;
  border-bottom: 1px solid var(--line); }
dt { color: var(--muted); }
dd { margin: 0; }
code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: .9375em; }
code + code { margin-left: .75em; }
pre { margin: 1.125rem 0; padding: .875rem 1rem; max-height: 24rem; overflow: auto; border: 1px solid var(--line);
  border-radius: .625rem; font: .8125rem/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; white-space: pre-wrap; }
input { font: inherit; padding: .5rem .75rem; border: 1px solid var(--edge); border-radius: .5rem; background: none; color: inherit; }
button, .button { font: inherit; font-weight: 500; padding: .625rem 1.25rem; min-height: 2.875rem; border: 1px solid var(--edge);
  border-radius: .5rem; background: none; color: inherit; cursor: pointer; flex: 1 1 8rem; }
button:hover, a.button:hover { background: var(--tint); }
.primary { background: var(--accent); border-color: var(--accent); color: var(--on-accent); font-weight: 600; }
button.primary:hover { background: var(--accent); filter: brightness(1.08); }
.button { display: block; text-align: center; text-decoration: none; }
button:focus-visible, a:focus-visible, pre:focus-visible, .before-choice:focus-visible { outline: 3px solid var(--accent); outline-offset: 3px;
  border-radius: .375rem; }
dd .aside { font-size: 1em; }
.aside { color: var(--muted); font-size: .875rem; }
.warning { color: var(--danger); }
@media (max-width: 33rem) {
  dl div { grid-template-columns: 1fr; }
  body { padding: 0; background: var(--card); }
  main { border: 0; border-radius: 0; box-shadow: none; padding: 1.75rem 1.25rem 2.5rem; }
}
${CHOICE}`;

const STYLE_SOURCE = hashSource(PAGE_STYLE);
