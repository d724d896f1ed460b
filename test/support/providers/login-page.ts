// Where a person says who they are, and what a browser is shown otherwise.
import type { ServerResponse } from 'node:http';
import type { Person } from './habits.ts';

/** Whom the emulators know unless another is given: Ada, with two groups. */
export const ADA: Person = {
  sub: 'user-1',
  name: 'Ada',
  email: 'ada@example.com',
  isEmailVerified: true,
  groups: ['developers', 'developers/compilers'],
};

/** The person of the form. `sub` is the name: the same name is the same person. */
export function readPerson(form: URLSearchParams): Person {
  const name = form.get('name')?.trim().slice(0, 100) || 'developer';
  const groups = form.get('groups') ?? ADA.groups.join(',');
  return {
    sub: name,
    name,
    email:
      form.get('email')?.trim() || `${name.toLowerCase().replace(/[^a-z0-9]+/g, '.')}@example.com`,
    isEmailVerified: form.get('unverified') === null,
    groups: groups
      .split(',')
      .map((group) => group.trim())
      .filter((group) => group !== ''),
  };
}

/** `npm run demo` fills in a form of this name by itself. */
const FORM_NAME = 'postern-dev-login';

/** No form-action: Chromium applies it to every redirect after the form, up to the client's own. */
const HEADERS = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy':
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'Cache-Control': 'no-store',
} as const;

/** `body` is HTML. */
export function sendPage(
  res: ServerResponse,
  { status = 200, title, body }: { status?: number; title: string; body: string },
): void {
  res.writeHead(status, HEADERS).end(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif; }
main { max-width: 44rem; margin: 8vh auto 0; padding: 0 1rem; }
form.login { max-width: 22rem; }
form.login input:not([type=checkbox]), form.login button { display: block; font: inherit; padding: .5rem .75rem; width: 100%; box-sizing: border-box; margin-bottom: 1rem; }
pre { overflow-x: auto; padding: .75rem; background: #8882; }
td, th { padding: .25rem 1rem .25rem 0; text-align: left; }
</style>
</head>
<body>
<main>
<h1>${title}</h1>
${body}
</main>
</body>
</html>
`);
}

/** Shows nothing of the request; the form goes to the address at which it stands. */
export const sendLoginPage = (res: ServerResponse, provider: string): void =>
  sendPage(res, {
    title: `“${provider}”: who are you?`,
    body: `<p>This stands in for ${provider} on this machine. Any name works, and there is no password.</p>
<form method="post" name="${FORM_NAME}" class="login">
<label for="name">Name</label>
<input id="name" name="name" value="Ada" maxlength="100" autocomplete="username" autofocus required>
<label for="email">Email address (one at example.com unless given)</label>
<input id="email" name="email" type="email" maxlength="200" autocomplete="off">
<p><label><input type="checkbox" name="unverified"> The address is not verified</label></p>
<label for="groups">Groups, separated by commas</label>
<input id="groups" name="groups" value="${ADA.groups.join(', ')}" maxlength="500" autocomplete="off">
<button type="submit">Log in</button>
</form>`,
  });

export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`);
