// How the pages look that are made for one request. They load nothing, so all of it is here.

/**
 * A choice that cannot be made by a click or key which was meant for something else: the second half
 * of a double click after the window in front went away, a key that was held down. It appears when
 * the page is in front (choice-script.ts says so by a class) and the pointer, or the keyboard's focus,
 * has been inside it for a moment, and goes at once when one of these ends. Until then pale pictures of
 * the buttons are seen in their place, which Tab reaches and no click does: a click would leave the focus
 * inside while other windows come and go. Visibility, because a hidden button takes neither clicks nor
 * focus. An animation, because a transition needs an earlier style, which a page that was never drawn
 * does not have.
 */
const CHOICE = `
.choice-place { display: grid; }
.choice-place > * { grid-area: 1 / 1; display: flex; flex-wrap: wrap; gap: .75rem; }
.before-choice { pointer-events: none; border-radius: .5rem; }
.before-choice .button { opacity: .45; }
.choice { visibility: hidden; }
.choice button:not(.primary):not(:hover) { background: var(--card); }
.in-front body:hover .choice, .in-front main:focus-within .choice { animation: appear 0s .6s both; }
@media (hover: none) { .in-front .choice { animation: appear 0s .6s both; } }
@media (scripting: none) { .choice-place { display: none; } }
@keyframes appear { from { visibility: hidden; } to { visibility: visible; } }
`;

/** The colours of the site; `--on-accent` is the text on a primary button. */
export const PAGE_STYLE = `
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
.brand { display: flex; align-items: center; gap: .625rem; margin-bottom: 1.25rem; font-weight: 600; font-size: .9375rem; }
.mark { width: 3rem; height: 3rem; display: grid; place-items: center; margin-bottom: 1.25rem; border-radius: 50%;
  background: var(--danger-tint); color: var(--danger); }
.grants { list-style: none; margin: 1.125rem 0; padding: 1rem 1.125rem; border-radius: .625rem; background: var(--tint); }
.grants li { display: flex; gap: .625rem; }
.grants li + li { margin-top: .5rem; }
.grants svg { margin-top: .25rem; color: var(--accent); }
.grants .aside { display: block; }
dl { margin: 1.125rem 0; border-top: 1px solid var(--line); font-size: .875rem; }
dl div { display: grid; grid-template-columns: 9.75rem 1fr; gap: .125rem 1rem; padding: .5rem 0;
  border-bottom: 1px solid var(--line); }
dt { color: var(--muted); }
dd { margin: 0; }
code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: .9375em; }
code + code { margin-left: .75em; }
input { font: inherit; padding: .5rem .75rem; border: 1px solid var(--edge); border-radius: .5rem; background: none; color: inherit; }
button, .button { font: inherit; font-weight: 500; padding: .625rem 1.25rem; min-height: 2.875rem; border: 1px solid var(--edge);
  border-radius: .5rem; background: none; color: inherit; cursor: pointer; flex: 1 1 8rem; }
button:hover, a.button:hover { background: var(--tint); }
.primary { background: var(--accent); border-color: var(--accent); color: var(--on-accent); font-weight: 600; }
button.primary:hover { background: var(--accent); filter: brightness(1.08); }
.button { display: block; text-align: center; text-decoration: none; }
button:focus-visible, a:focus-visible, .before-choice:focus-visible { outline: 3px solid var(--accent); outline-offset: 3px;
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
