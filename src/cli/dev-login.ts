/** The log-in page of the development provider. Nothing of the request is shown on it. */
export const loginPage = (prompt: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Postern development log-in</title>
<style>
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif; }
main { max-width: 22rem; margin: 15vh auto 0; padding: 0 1rem; }
input, button { font: inherit; padding: .5rem .75rem; width: 100%; box-sizing: border-box; }
button { margin-top: 1rem; }
</style>
</head>
<body>
<main>
<h1>Log in</h1>
<p>This is the development provider: any name will do, there is no password.</p>
<form method="post" data-prompt="${prompt === 'login' ? 'login' : 'other'}">
<label for="name">Name</label>
<input id="name" name="name" value="developer" autocomplete="username" autofocus required>
<button type="submit">Log in</button>
</form>
</main>
</body>
</html>
`;
