// §24, RFC 6749 §4.1.2, RFC 9207: what the browser brings back of an authorization server. Anybody can write an address: none of it
// is taken for what it says before it is compared with what was asked.
import { toOneLine } from '../http/oauth-client/token-answer.ts';
import { ConnectionProblem } from '../mcp/upstream/connections.ts';
import { quote } from '../platform/text.ts';

/** The login whose response is waited for. */
export interface AwaitedResponse {
  /** The name of the server that it is for. */
  readonly server: string;
  readonly issuer: string;
  /** True if `issuer` is what the authorization server calls itself. */
  readonly isIssuerKnown: boolean;
  /** RFC 9207 §3: whether it said that it names itself in its response. */
  readonly sendsIssuer: boolean;
  readonly tokenUrl: string;
}

export type AuthorizationResponse =
  | { readonly kind: 'code'; readonly code: string }
  /** The person said no there. */
  | { readonly kind: 'declined'; readonly problem: ConnectionProblem };

/** @throws ConnectionProblem */
export function readAuthorizationResponse(
  query: ReadonlyMap<string, string>,
  awaited: AwaitedResponse,
): AuthorizationResponse {
  const { server, issuer } = awaited;
  requireIssuer(awaited, query.get('iss'));
  const error = query.get('error');
  if (error === 'access_denied') {
    const problem = `${server} was not connected: its authorization server ${issuer} says that this was declined there.`;
    return { kind: 'declined', problem: new ConnectionProblem('person', problem) };
  }
  if (error !== undefined) throw createRefusal(awaited, error, query.get('error_description'));
  const code = query.get('code');
  if (code !== undefined && code !== '') return { kind: 'code', code };
  throw new ConnectionProblem(
    'server',
    `${server}: its authorization server ${issuer} sent the browser back without a code. ${BEGIN_AGAIN}`,
  );
}

export const BEGIN_AGAIN = 'Begin again from the list of connections.';

/** RFC 9207 §2.4. What is not said cannot be compared, unless it was promised. */
function requireIssuer(
  { server, issuer, isIssuerKnown, sendsIssuer, tokenUrl }: AwaitedResponse,
  iss: string | undefined,
): void {
  if (iss === undefined && !sendsIssuer) return;
  const isSame = isIssuerKnown
    ? iss === issuer
    : iss !== undefined && URL.canParse(iss) && new URL(iss).origin === new URL(tokenUrl).origin;
  if (isSame) return;
  throw new ConnectionProblem(
    'server',
    `${server}: the browser came back from ${iss === undefined ? 'an authorization server that does not say who it is' : quote(iss, 200)}, and the login was begun at ${issuer} (RFC 9207). Nothing was sent to either. ${BEGIN_AGAIN}`,
  );
}

function createRefusal(
  { server, issuer }: AwaitedResponse,
  error: string,
  description = '',
): ConnectionProblem {
  const code = /^[\w.-]{1,60}$/.test(error) ? error : 'an error';
  const why = toOneLine(description, 200).replace(/[.\s]+$/, '');
  const said = why === '' ? code : `${code}: ${why}`;
  const advice = ADVICE.get(error);
  return new ConnectionProblem(
    advice === undefined ? 'server' : 'operator',
    `${server}: its authorization server ${issuer} refused the login: ${said}.${advice ?? ''}`,
  );
}

const OF_RESOURCE =
  ' If it does not know the parameter "resource", set "resource": false in the "auth" of this server; if it wants another value, set that.';

/** Codes of RFC 6749 §4.1.2.1 and RFC 8707 §2: those that the configuration or the client is the cause of, and what to do. */
const ADVICE: ReadonlyMap<string, string> = new Map([
  [
    'unauthorized_client',
    ' See whether its client there may use the authorization code grant, and whether "clientId" is right.',
  ],
  ['invalid_scope', ' Set "scopes" to those that the client may ask for there.'],
  [
    'invalid_request',
    ' See what it documents for this request: "parameters", "resource" and "pkce" of "auth" change it.',
  ],
  ['unsupported_response_type', ' Its client there must be allowed the authorization code grant.'],
  ['invalid_target', OF_RESOURCE],
]);
