// §4.12: the content security policy of a page of the site.
import { createHash } from 'node:crypto';
import type { PageKind } from './page-kinds.ts';

/** Code in pages is coloured by style attributes; what the theme draws in style sheets are `data:` images. */
const DIRECTIVES: Readonly<Record<PageKind, readonly string[]>> = {
  documentation: ["style-src-attr 'unsafe-inline'"],
  app: ["connect-src 'self'"],
};

/**
 * `html` as it is sent: its inline scripts are allowed by their hashes, and no other. `logoOrigin` is where apps load
 * the logo from, where that is elsewhere.
 */
export function createPolicy(kind: PageKind, html: string, logoOrigin?: string): string {
  return [
    "default-src 'none'",
    ["script-src 'self'", ...hashInlineScripts(html)].join(' '),
    "style-src 'self'",
    ...DIRECTIVES[kind],
    ["img-src 'self' data:", ...(kind === 'app' && logoOrigin ? [logoOrigin] : [])].join(' '),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

const INLINE_SCRIPT = /<script(?![^>]*\ssrc=)[^>]*>([\s\S]*?)<\/script>/g;

const hashInlineScripts = (html: string): readonly string[] =>
  [...html.matchAll(INLINE_SCRIPT)].map(
    ([, script = '']) => `'sha256-${createHash('sha256').update(script).digest('base64')}'`,
  );
