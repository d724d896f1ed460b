// A browser of one person: it follows redirects, keeps cookies by host and path, logs its person in at the gateway's provider
// and at protected servers, and presses what the test says.
import { ACCOUNT_FORM } from './authorization-server.ts';
import { sendAsBrowser } from './send-as-browser.ts';

export interface BrowserPage {
  readonly url: URL;
  readonly status: number;
  readonly headers: Headers;
  readonly html: string;
  /** What a person reads. */
  readonly text: string;
}

export interface Browser {
  /** Follows redirects, and logs in where it is asked to. */
  open(url: string | URL): Promise<BrowserPage>;
  /** Presses the button, or follows the link, of this name. */
  press(page: BrowserPage, name: RegExp): Promise<BrowserPage>;
  /** Sends the form that has the button, with other values in it. */
  submit(
    page: BrowserPage,
    name: RegExp,
    fields: Readonly<Record<string, string>>,
  ): Promise<BrowserPage>;
  /** Posts these fields with the CSRF token of the page, as a form would that the page does not have. */
  submitTo(
    url: string,
    page: BrowserPage,
    fields: Readonly<Record<string, string>>,
  ): Promise<BrowserPage>;
  /**
   * As `open`, but stops before it asks for an address that begins with this, and resolves to it.
   * `press` presses a button first.
   */
  openAsFar(url: string | URL, stop: string): Promise<URL>;
  pressAsFar(page: BrowserPage, name: RegExp, stop: string): Promise<URL>;
  /** Addresses that it asked for, oldest first. */
  readonly visited: readonly string[];
  /** All that it was answered by this origin. */
  textOf(origin: string): string;
  readonly cookies: CookieJar;
}

export interface BrowserOptions {
  /** At the gateway's provider. */
  readonly person: string;
  /** At the gateway's provider, with commas between them; none unless given. */
  readonly groups?: string;
  /** Where another provider knows the person by another name: by its origin. */
  readonly names?: Readonly<Record<string, string>>;
  /** At protected servers; the person's own name unless given. */
  readonly account?: string;
  /** Of each request, as the replica that it is for. */
  readonly headers?: Readonly<Record<string, string>>;
}

type CookieJar = ReturnType<typeof createCookieJar>;

interface Sent {
  readonly url: URL;
  readonly form?: URLSearchParams | undefined;
}

const MAX_HOPS = 25;
const LOGIN_FORM = 'postern-dev-login';

export function createBrowser({
  person,
  account = person,
  groups = '',
  names = {},
  headers = {},
}: BrowserOptions): Browser {
  const cookies = createCookieJar();
  const visited: string[] = [];
  const shown: { readonly origin: string; readonly text: string }[] = [];

  async function go(first: Sent, stop?: string): Promise<BrowserPage | URL> {
    let { url, form } = first;
    let from: URL | undefined;
    for (let hop = 0; hop < MAX_HOPS; hop += 1) {
      if (stop !== undefined && url.href.startsWith(stop)) return url;
      visited.push(url.href);
      const isOwn = from === undefined || from.origin === url.origin;
      const answer = await sendAsBrowser(
        url,
        {
          cookie: cookies.createHeader(url),
          accept: 'text/html',
          ...(form !== undefined && { origin: url.origin }),
          'sec-fetch-mode': 'navigate',
          'sec-fetch-dest': 'document',
          'sec-fetch-site': isOwn ? 'same-origin' : 'cross-site',
          ...headers,
        },
        form,
      );
      cookies.store(url, answer.headers.getSetCookie());
      const location = answer.headers.get('location');
      const html = answer.body;
      shown.push({ origin: url.origin, text: `${JSON.stringify([...answer.headers])}\n${html}` });
      if (location !== null) {
        from = url;
        url = new URL(location, url);
        form = undefined;
        continue;
      }
      const asked = fillIn(url, html);
      if (asked === undefined) {
        return { url, status: answer.status, headers: answer.headers, html, text: readText(html) };
      }
      form = asked;
    }
    throw new Error(
      `It did not end within ${MAX_HOPS} hops: ${visited.slice(-MAX_HOPS).join('\n')}`,
    );
  }

  /** The forms by which others ask who one is. */
  function fillIn({ origin }: URL, html: string): URLSearchParams | undefined {
    // The name of a form, or what the page says of itself.
    if (html.includes(`"${LOGIN_FORM}"`))
      return new URLSearchParams({ name: names[origin] ?? person, groups });
    if (html.includes(`name="${ACCOUNT_FORM}"`)) return new URLSearchParams({ account });
    return undefined;
  }

  async function goToPage(first: Sent): Promise<BrowserPage> {
    const page = await go(first);
    if (page instanceof URL) throw new Error('Nothing was to stop it.');
    return page;
  }

  async function goAsFar(first: Sent, stop: string): Promise<URL> {
    const at = await go(first, stop);
    if (at instanceof URL) return at;
    throw new Error(`It came to ${at.url.href} (${at.status}) instead of ${stop}: ${at.text}`);
  }

  return {
    open: (url) => goToPage({ url: new URL(url) }),
    press: (page, name) => goToPage(findTarget(page, name)),
    submit: (page, name, fields) => goToPage(findTarget(page, name, fields)),
    submitTo: (url, { html }, fields) => {
      const [, csrf = ''] = /name="csrf" value="([^"]+)"/.exec(html) ?? [];
      return goToPage({ url: new URL(url), form: new URLSearchParams({ csrf, ...fields }) });
    },
    openAsFar: (url, stop) => goAsFar({ url: new URL(url) }, stop),
    pressAsFar: (page, name, stop) => goAsFar(findTarget(page, name), stop),
    visited,
    textOf: (origin) =>
      shown
        .filter((one) => one.origin === origin)
        .map(({ text }) => text)
        .join('\n'),
    cookies,
  };
}

const readText = (html: string): string =>
  html
    .replace(/<(style|script|title)\b.*?<\/\1>/gs, '')
    .replace(/<[^>]*>/g, ' ')
    .replace(/&#(\d+);/g, (_all, code) => String.fromCharCode(Number(code)))
    .replaceAll('&quot;', '"')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&')
    .replace(/\s+/g, ' ')
    .trim();

const readAttribute = (tag: string, name: string): string | undefined => {
  const found = new RegExp(`\\b${name}="([^"]*)"`).exec(tag)?.[1];
  return found === undefined ? undefined : readText(found);
};

/** Where the button of a form, or a link, leads. */
function findTarget(
  page: BrowserPage,
  name: RegExp,
  fields: Readonly<Record<string, string>> = {},
): Sent {
  for (const [whole, tag = ''] of page.html.matchAll(/<form\b([^>]*)>.*?<\/form>/gs)) {
    const buttons = [...whole.matchAll(/<button\b([^>]*)>(.*?)<\/button>/gs)];
    const button = buttons.find(
      ([, own = '', label = '']) =>
        name.test(readText(label)) || name.test(readAttribute(own, 'aria-label') ?? ''),
    );
    if (button === undefined) continue;
    const form = new URLSearchParams();
    for (const [input] of whole.matchAll(/<input\b[^>]*>/g)) {
      const field = readAttribute(input, 'name');
      if (field !== undefined) form.append(field, readAttribute(input, 'value') ?? '');
    }
    const pressed = readAttribute(button[1] ?? '', 'name');
    if (pressed !== undefined) form.set(pressed, readAttribute(button[1] ?? '', 'value') ?? '');
    for (const [field, value] of Object.entries(fields)) form.set(field, value);
    const action = readAttribute(button[1] ?? '', 'formaction') ?? readAttribute(tag, 'action');
    const url = new URL(action ?? '', page.url);
    if (/\bmethod="post"/i.test(tag)) return { url, form };
    url.search = form.toString();
    return { url };
  }
  for (const [, tag = '', label = ''] of page.html.matchAll(/<a\b([^>]*)>(.*?)<\/a>/gs)) {
    if (name.test(readText(label)))
      return { url: new URL(readAttribute(tag, 'href') ?? '', page.url) };
  }
  throw new Error(`There is no ${name} on ${page.url.href} (${page.status}): ${page.text}`);
}

/** By host, port and path: a port is enough to tell two servers of a test apart. */
function createCookieJar() {
  const kept = new Map<string, { host: string; path: string; pair: string; line: string }>();
  return {
    store(url: URL, lines: readonly string[]): void {
      for (const line of lines) {
        const [pair = '', ...attributes] = line.split(';').map((part) => part.trim());
        const path = attributes.find((part) => /^path=/i.test(part))?.slice('path='.length) ?? '/';
        const name = pair.slice(0, pair.indexOf('='));
        const key = `${url.host} ${path} ${name}`;
        if (pair === `${name}=` || /max-age=0\b/i.test(line)) kept.delete(key);
        else kept.set(key, { host: url.host, path, pair, line });
      }
    },
    createHeader: (url: URL): string =>
      [...kept.values()]
        .filter(({ host, path }) => host === url.host && url.pathname.startsWith(path))
        .map(({ pair }) => pair)
        .join('; '),
    /** As they were set. */
    list: (): readonly string[] => [...kept.values()].map(({ line }) => line),
    /** Of these names. */
    drop(names: RegExp): void {
      for (const [key, { pair }] of kept)
        if (names.test(pair.split('=')[0] ?? '')) kept.delete(key);
    },
    /** Puts those of another browser in the place of its own. */
    takeFrom(other: { list(): readonly string[] }, url: URL): void {
      kept.clear();
      this.store(url, other.list());
    },
  };
}
