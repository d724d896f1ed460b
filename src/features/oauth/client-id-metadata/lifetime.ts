// §4.6, RFC 9111 §4.2: for how long a fetched document may be used.
import type { IncomingHttpHeaders } from 'node:http';

const DEFAULT_SECONDS = 300;
const MAX_SECONDS = 86_400;

/** Milliseconds, from 0 (not to be kept) to 24 hours. `now` in epoch milliseconds. */
export function readLifetimeMs(headers: IncomingHttpHeaders, now: number): number {
  const directives = (headers['cache-control'] ?? '').toLowerCase().split(',').map(trim);
  if (directives.some((directive) => /^no-(store|cache)(=|$)/.test(directive))) return 0;
  const said = readMaxAge(directives) ?? readSecondsUntilExpiry(headers, now);
  if (said === undefined) return DEFAULT_SECONDS * 1000;
  const left = said - (parseSeconds(headers.age) ?? 0);
  return Math.min(Math.max(left, 0), MAX_SECONDS) * 1000;
}

/** The smallest of them; what is no number counts as stale (RFC 9111 §4.2.1). */
function readMaxAge(directives: readonly string[]): number | undefined {
  const said = directives.filter((directive) => /^max-age(=|$)/.test(directive));
  const ages = said.map((directive) => parseSeconds(directive.slice('max-age='.length)) ?? 0);
  return ages.length === 0 ? undefined : Math.min(...ages);
}

function readSecondsUntilExpiry(
  { expires, date }: IncomingHttpHeaders,
  now: number,
): number | undefined {
  if (expires === undefined) return undefined;
  const end = Date.parse(expires);
  const sent = Date.parse(date ?? '');
  return Number.isNaN(end) ? 0 : (end - (Number.isNaN(sent) ? now : sent)) / 1000;
}

const parseSeconds = (text = ''): number | undefined => {
  const digits = /^"?(\d+)"?$/.exec(text)?.[1];
  return digits === undefined ? undefined : Number(digits);
};

const trim = (text: string): string => text.trim();
