// §26.4: URLs to hosts that are not on a list: images or links with data in their address are the usual way to exfiltrate it.

import { text as textShape } from '../../config/file/shapes/scalar.ts';
import { defineMember, list } from '../../config/file/shapes/shape.ts';
import { defineBuiltInGuard, type JudgeMessage } from './define-guard.ts';
import {
  action,
  createTextJudge,
  type Form,
  type FoundText,
  type GuardAction,
  type ReadText,
} from './text-guard.ts';

export interface LinksUse {
  readonly kind: 'links';
  readonly hosts: readonly string[];
  readonly action: GuardAction;
}

const hostsMember = defineMember(
  'hosts',
  list(
    textShape(
      {
        parse: (given) =>
          /^(\*\.)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(given) ? given.toLowerCase() : undefined,
        allowed: 'a host such as example.com or *.example.com, without scheme or port',
      },
      { pattern: '^(\\*\\.)?[A-Za-z0-9]' },
    ),
    { allowed: 'a list of hosts, such as ["example.com", "*.example.com"]', isNotEmpty: true },
  ),
  'the hosts that URLs may lead to. *.example.com is any host below example.com.',
);

export const linksGuard = defineBuiltInGuard<LinksUse>({
  kind: 'links',
  summary: 'finds URLs to other hosts',
  members: [hostsMember, action],
  read({ has, read, report }) {
    const hosts = read(hostsMember);
    const chosen = read(action) ?? 'redact';
    if (!has(hostsMember)) report('"hosts" is missing: the hosts that URLs may lead to.');
    return hosts && { kind: 'links', hosts, action: chosen };
  },
  createJudge: createLinksJudge,
});

function createLinksJudge(use: LinksUse): JudgeMessage {
  const { hosts } = use;
  const exact = new Set(hosts.filter((host) => !host.startsWith('*.')));
  const endings = hosts.filter((host) => host.startsWith('*.')).map((host) => host.slice(1));
  const isAllowed = (host: string) =>
    exact.has(host) || endings.some((ending) => host.endsWith(ending));

  function find(text: string, form: Form): readonly FoundText[] {
    const expression = LINKS[form];
    if (expression === undefined || !MAY_LINK.test(text)) return [];
    return [...text.matchAll(expression)].flatMap(({ 0: link, index, groups }) => {
      const host = groups?.long === undefined ? readHost(link) : UNREADABLE;
      return host === undefined || isAllowed(host)
        ? []
        : [{ start: index, end: index + link.length, name: host }];
    });
  }

  return createTextJudge(
    {
      find,
      toMark: () => '[link removed]',
      tell(found) {
        const told = [...found].slice(0, MAX_TOLD).join(', ');
        const others = found.size > MAX_TOLD ? ' and others' : '';
        return `It links to hosts that are not allowed: ${told}${others}.`;
      },
      findLast,
    },
    use.action,
  );
}

// URL Standard "URL parsing": tabs and line feeds in an address are ignored.

const IN_ADDRESS = /[\t\n\r]+/g;
/** Names of members whose entire text is an address. */
const ADDRESS = /ur[il]|href|src/i;

const findLast = (name: string) => (ADDRESS.test(name) ? closeUp : closeUpAddresses);

const closeUp: ReadText = (text) => text.replace(IN_ADDRESS, '');
const closeUpAddresses: ReadText = (text) =>
  /[\t\n\r]/.test(text) ? text.replace(PLACES, closeUp) : text;

/**
 * Places where an address may begin: an HTML attribute or a Markdown definition, whose whitespace may have been a `&Tab;` if it
 * is unquoted; a Markdown or CSS destination; and, anywhere, a scheme that is split up.
 */
const PLACES = new RegExp(
  [
    /=\s*(?:"[^"]*|'[^']*)/,
    /(?:=|\]:)\s*<?(?:[/\\]_[/\\]|h_t_t_p_(?:s_)?:_(?:[/\\]_){0,2})/,
    /\]\(\s*[^()"]{0,4096}/,
    /<(?:[a-z\t\n\r]{1,30}:|[/\\]{2})[^<>]{0,4096}/,
    /url\(\s*[^()]{0,4096}/,
    /(?<![a-z0-9+.-])(?:h_t_t_p_(?:s_)?|w_s_(?:s_)?|f_t_p_(?:s_)?):_[/\\]_[/\\]?/,
  ]
    .map(({ source }) => source.replaceAll('_', '[\\t\\n\\r]*'))
    .join('|'),
  'gi',
);

const MAY_LINK = /[/\\]{2}|https?:|www\./i;

/**
 * With a scheme, or without one as browsers accept it: two or more slashes of either kind. Anything before an `@` is user info,
 * whatever it contains, and the host follows it. Each part begins where no other could, so the time is linear in the length of
 * the text. With a scheme that needs no slashes (`javascript:`), nothing is sent automatically.
 */
const WITH_SLASHES =
  /[/\\]{2,}(?:[^\s/\\?#]{0,4096}@)?(?:\[[^\s\]]{1,64}\]|[^\s"'<>`()[\]{}|^/\\])[^\s"'<>`()[\]{}|^]{0,4096}/;
/** `https:example.com`: browsers accept it, but people do not write it. Excludes a port number, as in `http:80`. */
const WITHOUT_SLASHES =
  /(?<![a-z0-9+.-])https?:(?!\d{1,5}(?![\w./?#:@%\\-]|[^\s!-~]{1,64}[\w.]))[/\\]?(?:[^\s/\\?#]{0,512}@)?[^\s"'<>`()[\]{}|^/\\][^\s"'<>`()[\]{}|^]{0,4096}/;
const SCHEME_BEFORE = '(?:https?|wss?|ftps?):';
/** At the beginning of an attribute, or in angle brackets, where user info may contain spaces. */
const createSpaced = (first: string, scheme: string) =>
  new RegExp(
    `(?=[${first}])(?<=["'<]\\s*)(?:${scheme}[/\\\\]{2,}|https?:)[^"'<>/\\\\?#]{0,512}@[^\\s"'<>\`()[\\]{}|^]{0,4096}`,
  );
const WITH_SPACES = createSpaced('hwf/\\\\', `(?:${SCHEME_BEFORE})?`);
const WITH_SCHEME_AND_SPACES = createSpaced('hwf', SCHEME_BEFORE);
/**
 * GitHub Flavored Markdown "Autolinks (extension)": a link without a scheme, which becomes `http:` and ends before a full stop.
 */
const WITHOUT_SCHEME =
  /(?<![a-z0-9@./\\-])www\.[^\s"'<>`()[\]{}|^]{0,4096}[^\s"'<>`()[\]{}|^?!.,:;*_~]/;
/** No real host is this long: the search for its end stops here. */
const TOO_LONG = /(?<long>[/\\]{4096}|[/\\]{2,}[^\s/\\?#]{4096,8192})/;

const createLink = (spaced: RegExp, begin: RegExp, ...more: readonly RegExp[]) =>
  new RegExp(
    [
      spaced.source,
      `${begin.source}(?:${TOO_LONG.source}|${WITH_SLASHES.source})`,
      WITHOUT_SLASHES.source,
      ...more.map(({ source }) => source),
    ].join('|'),
    'gi',
  );

/**
 * After a letter, two slashes are part of a path, or of the base64 in a `data:` address. In an image, any two bytes could be
 * slashes: only an address with a scheme counts there, and base64 contains none.
 */
const LINKS: Readonly<Record<Form, RegExp | undefined>> = {
  text: createLink(
    WITH_SPACES,
    /(?:[a-z][a-z0-9+.-]{0,20}:|(?<![a-z0-9+/\\]|;base64,))/,
    WITHOUT_SCHEME,
  ),
  bytes: createLink(WITH_SCHEME_AND_SPACES, /(?:https?|wss?|ftps?):/),
  base64: undefined,
};
/** Its last letters: in `a.https://example.com`, Markdown sees a link that starts at `https`. */
const SCHEME = /^[a-z0-9+.-]*?([a-z]*):/i;
const HAS_SLASHES = /^[^/\\]*[/\\]{2}/;
const UNREADABLE = 'an address that cannot be read';

/** As a browser parses it. An address that it cannot parse leads nowhere, but might work in another program. */
function readHost(link: string): string | undefined {
  if (/^www\./i.test(link)) return readHost(`http://${link}`);
  const [, scheme] = SCHEME.exec(link) ?? [];
  if (scheme !== undefined && !LEADING_OUT.has(scheme.toLowerCase())) return undefined;
  const absolute =
    scheme === undefined ? `https:${link}` : link.slice(link.indexOf(':') - scheme.length);
  if (!HAS_SLASHES.test(absolute)) return UNREADABLE;
  try {
    return new URL(absolute).hostname.toLowerCase() || undefined;
  } catch {
    return UNREADABLE;
  }
}

const LEADING_OUT = new Set(['http', 'https', 'ws', 'wss', 'ftp', 'ftps']);

const MAX_TOLD = 5;
