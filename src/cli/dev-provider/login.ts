import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Provider } from 'oidc-provider';
import { type Accounts, parseGroups } from './accounts.ts';
import { LOGIN_PAGE, LOGIN_PAGE_HEADERS } from './login-page.ts';

/** Where the provider sends a browser that has to log in. */
export const LOGIN_PATH = '/login/';

const MAX_NAME_LENGTH = 100;
const MAX_FORM_BYTES = 10_000;

/** Answers the login page and its form. @throws when the login has expired. */
export async function logIn(
  { provider, accounts }: { readonly provider: Provider; readonly accounts: Accounts },
  req: IncomingMessage,
  res: ServerResponse,
): Promise<void> {
  const { prompt } = await provider.interactionDetails(req, res);
  // Nobody is asked for consent here, even where a client insists on it.
  if (prompt.name !== 'login') {
    await provider.interactionFinished(
      req,
      res,
      { consent: {} },
      { mergeWithLastSubmission: true },
    );
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
