import { DEFAULT_GROUPS } from './accounts.ts';

/** The login page. It shows nothing of the request and loads nothing. */
export const LOGIN_PAGE = `<!doctype html>
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
export const LOGIN_PAGE_HEADERS = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy':
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
  'X-Content-Type-Options': 'nosniff',
  'Cache-Control': 'no-store',
} as const;
