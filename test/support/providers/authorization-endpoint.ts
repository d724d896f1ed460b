// The authorization endpoint of an emulator: RFC 6749 §4.1.1 with PKCE, and who logs in there.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Habits, Person, Refusal, Surroundings } from './habits.ts';
import { readPerson, sendLoginPage, sendPage } from './login-page.ts';
import type { Logins } from './logins.ts';

export interface AuthorizationEndpointDeps {
  readonly habits: Habits;
  readonly here: Surroundings;
  readonly logins: Logins;
  /** Who is logged in there already; undefined where everybody is asked. */
  readonly getPerson: () => Person | undefined;
}

/** What a browser brings back to the gateway. */
export interface Back {
  readonly code: string;
  readonly state: string;
}

export function createAuthorizationEndpoint(deps: AuthorizationEndpointDeps) {
  const { habits, here, logins, getPerson } = deps;

  function findRefusal(asked: URLSearchParams): Refusal | undefined {
    const own = habits.refuseAuthorization(asked);
    if (own !== undefined) return own;
    if (asked.get('response_type') !== 'code') {
      return { error: 'unsupported_response_type', error_description: 'Only code is known here.' };
    }
    const scopes = (asked.get('scope') ?? '').split(' ').filter((scope) => scope !== '');
    const unknown = scopes.filter((scope) => !habits.scopes.includes(scope));
    if (habits.refusesUnknownScopes && unknown.length > 0) {
      return {
        error: 'invalid_scope',
        error_description: `Some requested scopes were invalid: {invalid=[${unknown.join(', ')}]}`,
      };
    }
    if (asked.has('code_challenge') && asked.get('code_challenge_method') !== 'S256') {
      return { error: 'invalid_request', error_description: 'code_challenge_method must be S256.' };
    }
    return undefined;
  }

  /** The person logs in. @throws Error where the request is refused. */
  function logIn(asked: URLSearchParams, person: Person): Back {
    const refusal = findRefusal(asked);
    if (refusal !== undefined) throw new Error(`${refusal.error}: ${refusal.error_description}`);
    const code = logins.begin(person, asked, asked.get('code_challenge'));
    return { code, state: asked.get('state') ?? '' };
  }

  function answer(req: IncomingMessage, res: ServerResponse, form: URLSearchParams): void {
    const asked = new URL(req.url ?? '', here.origin).searchParams;
    const redirectUri = asked.get('redirect_uri') ?? '';
    // RFC 6749 §4.1.2.1: then nobody is sent anywhere.
    const isKnown = asked.get('client_id') === here.clientId && isCallback(redirectUri);
    if (!isKnown) {
      sendPage(res, {
        status: 400,
        title: 'This login cannot go on',
        body: `<p>The client must be “${here.clientId}”, and its redirect URI that of a gateway on this machine, http://localhost:&lt;port&gt;/oauth/callback.</p>`,
      });
      return;
    }
    const state = asked.get('state');
    const refusal = findRefusal(asked);
    if (refusal !== undefined) {
      leadBack(res, redirectUri, { ...refusal, state });
      return;
    }
    const person = req.method === 'POST' ? readPerson(form) : getPerson();
    if (person === undefined) {
      sendLoginPage(res, habits.title);
    } else if (logins.isDisabled(person.sub)) {
      const error_description = 'This user is disabled.';
      leadBack(res, redirectUri, { error: 'access_denied', error_description, state });
    } else {
      leadBack(res, redirectUri, { ...logIn(asked, person) });
    }
  }

  return { answer, logIn };
}

/** The one that docs/providers.md has one register: nobody's browser is sent elsewhere. */
const isCallback = (uri: string): boolean =>
  URL.canParse(uri) && new URL(uri).pathname.endsWith('/oauth/callback');

function leadBack(
  res: ServerResponse,
  redirectUri: string,
  answer: Readonly<Record<string, string | number | null>>,
): void {
  const back = new URL(redirectUri);
  for (const [name, value] of Object.entries(answer)) {
    if (value !== null) back.searchParams.set(name, String(value));
  }
  res.writeHead(302, { location: back.href }).end();
}
