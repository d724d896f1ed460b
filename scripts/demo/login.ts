// Logs in at the development provider as a browser would: redirects, cookies, one form.
import { UnreachableError } from './explain-error.ts';

/** Says what was fetched: `GET http://… → 302`. */
export type NoteRequest = (method: string, url: URL, status: number) => void;

const DEV_LOGIN_MARK = 'postern-dev-login';
const MAX_HOPS = 20;

/**
 * The address that the provider sends the browser back to, with `code` or `error` in its query; undefined when the way leads to a
 * page that is not the development provider's, which is for a person to look at.
 *
 * @throws Error when a page on the way refuses.
 */
export async function logInAs(
  name: string,
  authorizationUrl: URL,
  redirectUri: string,
  noteRequest: NoteRequest = () => {},
): Promise<URL | undefined> {
  const jar = createCookieJar();
  let url = authorizationUrl;
  let form: URLSearchParams | undefined;
  for (let hop = 0; hop < MAX_HOPS; hop += 1) {
    const method = form === undefined ? 'GET' : 'POST';
    const answer = await fetch(url, {
      method,
      redirect: 'manual',
      headers: { cookie: jar.createHeader(url) },
      ...(form !== undefined && { body: form }),
    }).catch((cause: unknown) => {
      throw new UnreachableError(url.origin, { cause });
    });
    noteRequest(method, url, answer.status);
    jar.store(url, answer.headers.getSetCookie());
    const location = answer.headers.get('location');
    if (location !== null) {
      url = new URL(location, url);
      form = undefined;
      if (url.href.startsWith(redirectUri)) return url;
      if (!isLocal(url)) return undefined;
      continue;
    }
    const page = await answer.text();
    if (answer.status >= 400) throw new Error(`${url.origin} refused the login: ${readText(page)}`);
    const consent = readConsentForm(page);
    if (consent !== undefined && isLocal(consent.action)) {
      url = consent.action;
      form = consent.form;
      continue;
    }
    if (form !== undefined || !page.includes(DEV_LOGIN_MARK)) return undefined;
    form = new URLSearchParams({ name });
  }
  throw new Error(`The login did not end within ${MAX_HOPS} redirects.`);
}

/** The text of a page for its reader. */
const readText = (page: string): string =>
  page
    .replace(/<(style|script)\b.*?<\/\1>/gs, '')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim();

/** The form of the gateway's consent page, answered with yes. */
function readConsentForm(page: string): { action: URL; form: URLSearchParams } | undefined {
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

/** Cookies by host and path; good enough for one login. */
function createCookieJar() {
  const cookies = new Map<string, { host: string; path: string; pair: string }>();
  return {
    store(url: URL, lines: readonly string[]): void {
      for (const line of lines) {
        const [pair = '', ...attributes] = line.split(';').map((part) => part.trim());
        const path = attributes.find((part) => /^path=/i.test(part))?.slice('path='.length) ?? '/';
        const name = pair.slice(0, pair.indexOf('='));
        const key = `${url.host} ${path} ${name}`;
        if (pair === `${name}=`) cookies.delete(key);
        else cookies.set(key, { host: url.host, path, pair });
      }
    },
    createHeader: (url: URL): string =>
      [...cookies.values()]
        .filter(({ host, path }) => host === url.host && url.pathname.startsWith(path))
        .map(({ pair }) => pair)
        .join('; '),
  };
}
