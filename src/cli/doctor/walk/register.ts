// RFC 7591: doctor registers as a client does. Once: few registrations are allowed in an hour.
import type { Advice } from '../finding.ts';
import type { Answer, Probe } from '../network/probe.ts';
import { readWords } from '../network/read-words.ts';
import { adviseOnLimit } from './read-limit.ts';

export type Registration =
  | {
      readonly kind: 'registered';
      readonly clientId: string;
      /** Schemes of editors are refused, so these were left out. */
      readonly refusedSchemes: string | undefined;
    }
  | { readonly kind: 'token-needed' }
  | { readonly kind: 'limited'; readonly advice: Advice }
  | { readonly kind: 'refused'; readonly said: string };

/** Where doctor says that it could be called back; nobody listens there, and nothing is sent there. */
export const LOOPBACK_REDIRECT_URI = 'http://127.0.0.1:33418/callback';

/** Of an editor that is called back by a scheme of its own (RFC 8252 §7.1). */
export const EDITOR_SCHEME = 'cursor';
const EDITOR_REDIRECT_URI = `${EDITOR_SCHEME}://anysphere.cursor-mcp/oauth/callback`;

/** `refusesEditors`: where the settings at hand say so, it is not tried. @throws FetchError */
export async function register(
  url: string,
  probe: Probe,
  refusesEditors: boolean,
): Promise<Registration> {
  if (refusesEditors) {
    const answer = await send(url, [LOOPBACK_REDIRECT_URI], probe);
    return judge(answer, `OAUTH_REDIRECT_SCHEMES does not list ${EDITOR_SCHEME}.`);
  }
  const withEditor = await send(url, [LOOPBACK_REDIRECT_URI, EDITOR_REDIRECT_URI], probe);
  if (withEditor.json?.error !== 'invalid_redirect_uri') return judge(withEditor, undefined);
  return judge(await send(url, [LOOPBACK_REDIRECT_URI], probe), readError(withEditor));
}

function judge(answer: Answer, refusedSchemes: string | undefined): Registration {
  const clientId = answer.json?.client_id;
  if (answer.status === 201 && typeof clientId === 'string') {
    return { kind: 'registered', clientId, refusedSchemes };
  }
  if (answer.status === 401) return { kind: 'token-needed' };
  return answer.status === 429
    ? { kind: 'limited', advice: adviseOnLimit(answer, 'DCR') }
    : { kind: 'refused', said: readError(answer) };
}

const send = (url: string, redirectUris: readonly string[], probe: Probe): Promise<Answer> =>
  probe(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'application/json' },
    body: JSON.stringify({
      client_name: 'postern doctor',
      redirect_uris: redirectUris,
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    }),
  });

/** RFC 6749 §5.2, or what else the body says. */
export function readError({ status, json, text }: Answer): string {
  const { error, error_description: description } = json ?? {};
  const words = [error, description].filter((one) => typeof one === 'string').join(': ');
  const said = words === '' ? readWords(text) : words;
  return `${status} ${said.slice(0, 300)}`.trim();
}
