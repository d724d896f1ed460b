// Walks the development provider's log-in as a browser would: redirects, cookies, one form.
import { UnreachableError } from './explain.ts';

/** Says what was fetched: `GET http://… → 302`. */
export type Note = (method: string, url: URL, status: number) => void;

const MARK = 'postern-dev-login';
const MAX_HOPS = 20;

/**
 * The address to which the provider sends the browser back, with `code` or `error` in its query;
 * undefined when the way leads to a page that is not the development provider's, which is for a
 * person to look at.
 *
 * @throws Error when a page on the way refuses.
 */
export async function logInAs(
  name: string,
  authorizationUrl: URL,
  redirectUri: string,
  note: Note = () => {},
): Promise<URL | undefined> {
  const jar = createCookieJar();
  let url = authorizationUrl;
  let form: URLSearchParams | undefined;
  for (let hop = 0; hop < MAX_HOPS; hop += 1) {
    const method = form === undefined ? 'GET' : 'POST';
    const answer = await fetch(url, {
      method,
      redirect: 'manual',
      headers: { cookie: jar.header(url) },
      ...(form !== undefined && { body: form }),
    }).catch((cause: unknown) => {
      throw new UnreachableError(url.origin, { cause });
    });
    note(method, url, answer.status);
    jar.keep(url, answer.headers.getSetCookie());
    const location = answer.headers.get('location');
    if (location !== null) {
      url = new URL(location, url);
      form = undefined;
      if (url.href.startsWith(redirectUri)) return url;
      if (!isLocal(url)) return undefined;
      continue;
    }
    const page = await answer.text();
    if (answer.status >= 400) throw new Error(`${url.origin} refuses the log-in: ${page}`);
    const consent = consentForm(page);
    if (consent !== undefined && isLocal(consent.action)) {
      url = consent.action;
      form = consent.form;
      continue;
    }
    if (form !== undefined || !page.includes(MARK)) return undefined;
    form = new URLSearchParams({ name });
  }
  throw new Error('The log-in goes round in circles.');
}

/** The gateway's own question, answered with yes. */
function consentForm(page: string): { action: URL; form: URLSearchParams } | undefined {
  const [, action] =
    /<form\b[^>]* method="post" action="([^"]+\/oauth\/consent)">/.exec(page) ?? [];
  if (action === undefined) return undefined;
  const hidden = page.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]+)">/g);
  const form = new URLSearchParams();
  for (const [, field = '', value = ''] of hidden) form.append(field, value);
  form.set('decision', 'approve');
  return { action: new URL(action), form };
}

const isLocal = ({ protocol, hostname }: URL): boolean =>
  protocol === 'http:' && (hostname === 'localhost' || hostname === '127.0.0.1');

/** Cookies by host and path; good enough for one log-in. */
function createCookieJar() {
  const cookies = new Map<string, { host: string; path: string; pair: string }>();
  return {
    keep(url: URL, lines: readonly string[]): void {
      for (const line of lines) {
        const [pair = '', ...attributes] = line.split(';').map((part) => part.trim());
        const path = attributes.find((part) => /^path=/i.test(part))?.slice('path='.length) ?? '/';
        const name = pair.slice(0, pair.indexOf('='));
        const key = `${url.host} ${path} ${name}`;
        if (pair === `${name}=`) cookies.delete(key);
        else cookies.set(key, { host: url.host, path, pair });
      }
    },
    header: (url: URL): string =>
      [...cookies.values()]
        .filter(({ host, path }) => host === url.host && url.pathname.startsWith(path))
        .map(({ pair }) => pair)
        .join('; '),
  };
}
