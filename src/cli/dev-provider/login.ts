// The login page of the development provider, its form, and who has logged in by it.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Provider } from 'oidc-provider';

/** The path to which the provider sends a browser that has to log in. */
export const LOGIN_PATH = '/login/';

const DEFAULT_GROUPS = 'developers';
const MAX_NAME_LENGTH = 100;
const MAX_FORM_BYTES = 10_000;

/** Answers the login page and its form. @throws when the login has expired. */
export async function logIn(
  provider: Provider,
  accounts: Accounts,
  req: IncomingMessage,
  res: ServerResponse,
): Promise<void> {
  const { prompt } = await provider.interactionDetails(req, res);
  // Nobody is asked for consent here, even where a client insists on it.
  if (prompt.name !== 'login') {
    const options = { mergeWithLastSubmission: true };
    await provider.interactionFinished(req, res, { consent: {} }, options);
  } else if (req.method === 'POST') {
    const form = await readForm(req);
    const name = form.get('name')?.trim().slice(0, MAX_NAME_LENGTH) || 'developer';
    const groups = form.get('groups');
    if (groups !== null) accounts.setGroups(name, parseGroups(groups));
    await provider.interactionFinished(req, res, { login: { accountId: name } });
  } else {
    res.writeHead(200, LOGIN_PAGE_HEADERS).end(LOGIN_PAGE);
  }
}

async function readForm(req: IncomingMessage): Promise<URLSearchParams> {
  let form = '';
  for await (const chunk of req) {
    form += chunk;
    if (form.length > MAX_FORM_BYTES) throw new Error('The form is too large.');
  }
  return new URLSearchParams(form);
}

/** The login page. It shows nothing of the request and loads nothing. */
const LOGIN_PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="application-name" content="postern-dev-login">
<title>Postern development login</title>
<style>
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif; }
main { max-width: 22rem; margin: 15vh auto 0; padding: 0 1rem; }
input, button { font: inherit; padding: .5rem .75rem; width: 100%; box-sizing: border-box; }
label[for=groups], button { display: block; margin-top: 1rem; }
</style>
</head>
<body>
<main>
<h1>Log in</h1>
<p>This is the development provider: any name works, and there is no password.</p>
<form method="post">
<label for="name">Name</label>
<input id="name" name="name" value="developer" maxlength="100" autocomplete="username" autofocus required>
<label for="groups">Groups, with commas between them</label>
<input id="groups" name="groups" value="${DEFAULT_GROUPS}" maxlength="500" autocomplete="off">
<button type="submit">Log in</button>
</form>
</main>
</body>
</html>
`;

/** No form-action: Chromium applies it to every redirect after the form, up to the client's own. */
const LOGIN_PAGE_HEADERS = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy':
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'Cache-Control': 'no-store',
} as const;

export type Accounts = ReturnType<typeof createAccounts>;

/** Names whose groups are remembered: a test may log in under any number of them. */
const MAX_NAMES = 1000;
const MAX_GROUPS = 50;

export function createAccounts() {
  /** The first logged in longest ago. */
  const groupsOf = new Map<string, readonly string[]>();

  return {
    /** Remembers the groups of this name, until it logs in with others. */
    setGroups(name: string, groups: readonly string[]): void {
      groupsOf.delete(name);
      groupsOf.set(name, groups);
      const [oldest = ''] = groupsOf.keys();
      if (groupsOf.size > MAX_NAMES) groupsOf.delete(oldest);
    },
    /** Claims of tokens for this name. */
    createClaims: (name: string) => ({
      name,
      email: `${name.toLowerCase().replace(/[^a-z0-9]+/g, '.')}@example.com`,
      groups: groupsOf.get(name) ?? parseGroups(DEFAULT_GROUPS),
    }),
  };
}

/** `developers, operators`; none where nothing is typed. */
export const parseGroups = (text: string): readonly string[] =>
  text
    .split(',')
    .map((group) => group.trim())
    .filter((group) => group !== '')
    .slice(0, MAX_GROUPS);
