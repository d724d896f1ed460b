// §26.4: URLs to hosts outside of a list: a picture or link that carries data in its address is the usual way out for it.

import { type Decision, PASS } from '../decision.ts';
import type { BuiltInGuardConfig } from '../guard-config.ts';
import type { AskGuard } from '../run-guard.ts';
import { mapTexts } from './map-texts.ts';

type LinksConfig = Extract<BuiltInGuardConfig, { kind: 'links' }>;

export function createLinksGuard({ hosts, action }: LinksConfig): AskGuard {
  const exact = new Set(hosts.filter((host) => !host.startsWith('*.')));
  const endings = hosts.filter((host) => host.startsWith('*.')).map((host) => host.slice(1));
  const isAllowed = (host: string): boolean =>
    exact.has(host) || endings.some((ending) => host.endsWith(ending));

  return function judgeLinks({ value }): Decision {
    const found = new Set<string>();
    const remove = (text: string): string =>
      text.replace(LINK, (link) => {
        const host = readHost(link);
        if (host === undefined || isAllowed(host)) return link;
        found.add(host);
        return REMOVED;
      });
    const replaced = mapTexts(value, (text) => {
      const removed = MAY_LINK.test(text) ? remove(text) : text;
      if (!text.includes('&')) return removed;
      // Markdown and HTML have other spellings of characters, which count once they are read.
      const read = decodeCharacters(removed);
      const removedOfRead = remove(read);
      return removedOfRead === read ? removed : removedOfRead;
    });
    if (found.size === 0) return PASS;
    return action === 'redact'
      ? { kind: 'change', value: replaced }
      : { kind: 'refuse', message: `It links to hosts that are not allowed: ${tell(found)}.` };
  };
}

const REMOVED = '[link removed]';

const MAY_LINK = /[/\\]{2}|https?:/i;

/**
 * With a scheme, or with none as browsers take it: two slashes or more, either way. What stands before an `@` is a name of a
 * user, whatever is in it, so that the host comes behind. Each part begins where no other could, so that the time grows with the
 * text alone. Behind a scheme that needs no slashes (`javascript:`) nothing is sent by itself.
 */
const WITH_SLASHES =
  /(?:[a-z][a-z0-9+.-]{0,20}:)?(?<![/\\])[/\\]{2,}(?:[^\s/\\?#]*@)?(?:\[[^\s\]]{1,64}\]|[^\s"'<>`()[\]{}|^/\\])[^\s"'<>`()[\]{}|^]{0,4096}/;
/** `https:example.com`: browsers read it, and people do not write it. No number of a port, as in `http:80`. */
const WITHOUT_SLASHES =
  /(?<![a-z0-9+.-])https?:(?!\d{1,5}(?![\w./?#:@\\-]))[/\\]?[^\s"'<>`()[\]{}|^/\\][^\s"'<>`()[\]{}|^]{0,4096}/;
const LINK = new RegExp(`${WITH_SLASHES.source}|${WITHOUT_SLASHES.source}`, 'gi');
const HAS_SLASHES = /^[^/\\]*[/\\]{2}/;
const UNREADABLE = 'an address that cannot be read';

/** HTML: by their number, and those of which addresses are made by name. */
const decodeCharacters = (text: string): string =>
  text.replace(CHARACTER, (_, decimal?: string, hex?: string, name = '') => {
    const code = decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal);
    if (code <= 0x10ffff) return String.fromCodePoint(code);
    return NAMED[name.toLowerCase()] ?? '\ufffd';
  });
const NAMED: Readonly<Record<string, string>> = {
  sol: '/',
  bsol: '\\',
  colon: ':',
  period: '.',
  commat: '@',
  num: '#',
  quest: '?',
};
const CHARACTER = /&(?:#(\d{1,8})|#x([0-9a-f]{1,6})|(sol|bsol|colon|period|commat|num|quest));?/gi;

/** As a browser reads it; what it cannot read leads nowhere, but could for another reader. */
function readHost(link: string): string | undefined {
  const absolute = /^[a-z][a-z0-9+.-]*:/i.test(link) ? link : `https:${link}`;
  const scheme = absolute.slice(0, absolute.indexOf(':')).toLowerCase();
  if (!LEADING_OUT.has(scheme)) return undefined;
  if (!HAS_SLASHES.test(absolute)) return UNREADABLE;
  try {
    return new URL(absolute).hostname.toLowerCase() || undefined;
  } catch {
    return UNREADABLE;
  }
}

const LEADING_OUT: ReadonlySet<string> = new Set(['http', 'https', 'ws', 'wss', 'ftp', 'ftps']);

const MAX_TOLD = 5;

const tell = (hosts: ReadonlySet<string>): string => {
  const told = [...hosts].slice(0, MAX_TOLD).join(', ');
  return hosts.size > MAX_TOLD ? `${told} and others` : told;
};
