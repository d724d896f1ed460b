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
    const replaced = mapTexts(value, (text) => {
      if (!text.includes('//') && !text.includes('\\\\')) return text;
      return text.replace(LINK, (link) => {
        const host = readHost(link);
        if (host === undefined || isAllowed(host)) return link;
        found.add(host);
        return REMOVED;
      });
    });
    if (found.size === 0) return PASS;
    return action === 'redact'
      ? { kind: 'change', value: replaced }
      : { kind: 'refuse', message: `It links to hosts that are not allowed: ${tell(found)}.` };
  };
}

const REMOVED = '[link removed]';

/**
 * With a scheme, or with none as browsers take it: two slashes, either way. Behind a scheme that needs no slashes
 * (`javascript:`) nothing is sent by itself.
 */
const LINK = /(?:[a-z][a-z0-9+.-]{0,20}:)?[/\\]{2}[^\s"'<>`()[\]{}|^]{1,4096}/gi;

/** As a browser reads it; what it cannot read leads nowhere, but could for another reader. */
function readHost(link: string): string | undefined {
  const absolute = /^[a-z][a-z0-9+.-]*:/i.test(link) ? link : `https:${link}`;
  const scheme = absolute.slice(0, absolute.indexOf(':')).toLowerCase();
  if (!LEADING_OUT.has(scheme)) return undefined;
  try {
    return new URL(absolute).hostname.toLowerCase() || undefined;
  } catch {
    return 'an address that cannot be read';
  }
}

const LEADING_OUT: ReadonlySet<string> = new Set(['http', 'https', 'ws', 'wss', 'ftp', 'ftps']);

const MAX_TOLD = 5;

const tell = (hosts: ReadonlySet<string>): string => {
  const told = [...hosts].slice(0, MAX_TOLD).join(', ');
  return hosts.size > MAX_TOLD ? `${told} and others` : told;
};
