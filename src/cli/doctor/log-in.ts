// Begins a login as a client and a browser do: registers a client (RFC 7591), and logs in up to the provider's login page.
import { PAGE_EXPIRED } from '../../logins/consent/consent.ts';
import { generateSecret, hashSha256 } from '../../platform/ids.ts';
import { isObject, type JsonObject } from '../../platform/json.ts';
import type { Advice } from './finding.ts';
import { type Probe, type ProbeAnswer, readHeaderWords } from './instruments.ts';

export interface LoginClient {
  readonly clientId: string;
  readonly redirectUri: string;
}

interface LoginAttempt extends LoginClient {
  /** The authorization endpoint. */
  readonly url: string;
  readonly resource: string;
  /** True if another login may reach another replica. */
  readonly mayHaveReplicas: boolean;
  readonly probe: Probe;
}

/** Each login opens new connections, which may lead to another replica. */
const ROUNDS = 3;

/**
 * Returns the first outcome other than reaching the provider, or the last one. Each round counts towards the same limit as the
 * user's browser, so there are several rounds only if replicas may differ and half of the limit is left.
 *
 * @throws FetchError
 */
export async function logInAsClient(attempt: LoginAttempt) {
  const rounds = attempt.mayHaveReplicas ? ROUNDS : 1;
  let { outcome: last, isHalfLeft } = await beginLogin(attempt);
  for (let round = 1; round < rounds && isHalfLeft && last.kind === 'at-provider'; round += 1) {
    const next = await beginLogin(attempt);
    if (next.outcome.kind !== 'limited') last = next.outcome;
    isHalfLeft = next.isHalfLeft;
  }
  return last;
}

/** `isHalfLeft`: true while half of the logins allowed for this address are left. */
async function beginLogin({ url: start, clientId, redirectUri, resource, probe }: LoginAttempt) {
  const url = new URL(start);
  const parameters = {
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUri,
    code_challenge: hashSha256(generateSecret()),
    code_challenge_method: 'S256',
    state: generateSecret(),
    resource,
  };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  const answer = await probe(url.href);
  const form = readConsentForm(answer);
  const readCount = (name: string) => Number(answer.headers.get(name) ?? Number.NaN);
  // Also true without a limit.
  const isHalfLeft = !(readCount('x-ratelimit-remaining') * 2 < readCount('x-ratelimit-limit'));
  if (form === undefined) return { outcome: judgeLogin(answer, redirectUri, false), isHalfLeft };
  const decided = await probe(form.action, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/x-www-form-urlencoded',
      Cookie: (answer.headers.get('set-cookie') ?? '').split(';')[0] ?? '',
    },
    body: form.body,
  });
  return { outcome: judgeLogin(decided, redirectUri, true), isHalfLeft };
}

function judgeLogin(answer: ProbeAnswer, redirectUri: string, hasConsentPage: boolean) {
  const { href, searchParams } = answer.location ?? {};
  if (href?.startsWith(`${redirectUri}?`)) {
    const said = ['error', 'error_description'].map((name) => searchParams?.get(name));
    return { kind: 'refused' as const, said: said.filter(Boolean).join(': ') };
  }
  // The authorization request of the gateway to the provider.
  if (href !== undefined) return { kind: 'at-provider' as const, url: href, hasConsentPage };
  const said = readError(answer);
  if (answer.status === 429) {
    const advice = adviseOnLimit(answer, hasConsentPage ? 'OAUTH_CONSENT' : 'OAUTH_AUTHORIZE');
    return { kind: 'limited' as const, advice };
  }
  // The client that was just registered is unknown.
  if (answer.json?.error === 'invalid_client') return { kind: 'client-forgotten' as const, said };
  // The consent page that was just shown counts as expired.
  return hasConsentPage && said.includes(PAGE_EXPIRED)
    ? { kind: 'page-forgotten' as const, said }
    : { kind: 'refused' as const, said };
}

/** Approves the consent page, which is about doctor's own client. */
function readConsentForm({ status, text, url }: ProbeAnswer) {
  const [, action] =
    /<form\b[^<>]* method="post" action="([^"<>]+\/oauth\/consent)">/.exec(text) ?? [];
  if (status !== 200 || action === undefined || !URL.canParse(action, url)) return undefined;
  const fields = text.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]+)">/g);
  const form = new URLSearchParams();
  for (const [, name = '', value = ''] of fields) form.append(name, value);
  form.set('decision', 'approve');
  return { action: new URL(action, url).href, body: form.toString() };
}

export type ProbeRegistration = Awaited<ReturnType<typeof registerClient>>;

/** Doctor's redirect URI; no program listens there, and no request is sent there. */
export const LOOPBACK_REDIRECT_URI = 'http://127.0.0.1:33418/callback';

/** The scheme of an editor with a private-use redirect URI (RFC 8252 §7.1). */
export const EDITOR_SCHEME = 'cursor';
const EDITOR_REDIRECT_URI = `${EDITOR_SCHEME}://anysphere.cursor-mcp/oauth/callback`;

/**
 * Registers once: only few registrations are allowed per hour. `refusesEditors`: the local settings refuse an editor's scheme,
 * so it is not tried. @throws FetchError
 */
export async function registerClient(url: string, probe: Probe, refusesEditors: boolean) {
  const send = (...redirectUris: readonly string[]) =>
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
  const withEditor = refusesEditors
    ? undefined
    : await send(LOOPBACK_REDIRECT_URI, EDITOR_REDIRECT_URI);
  const isRefused = withEditor === undefined || withEditor.json?.error === 'invalid_redirect_uri';
  const answer = isRefused ? await send(LOOPBACK_REDIRECT_URI) : withEditor;
  const clientId = answer.json?.client_id;
  if (answer.status === 201 && typeof clientId === 'string') {
    const says = withEditor
      ? readError(withEditor)
      : `OAUTH_REDIRECT_SCHEMES does not list ${EDITOR_SCHEME}.`;
    // The editor's refused scheme was left out.
    const refusedSchemes = isRefused ? says : undefined;
    return { kind: 'registered' as const, clientId, refusedSchemes };
  }
  if (answer.status === 401) return { kind: 'token-needed' as const };
  return answer.status === 429
    ? { kind: 'limited' as const, advice: adviseOnLimit(answer, 'DCR') }
    : { kind: 'refused' as const, said: readError(answer) };
}

// Reads the gateway's responses: its errors (§7.1), and which limit rejected a request (§8).

/** Suffixes of limit variables, by the `reason` of the refusal (§7.2). */
const VARIABLES: ReadonlyMap<string | undefined, string> = new Map([
  ['rate_limit_exceeded', 'RATE_LIMIT_MAX'],
  ['user_rate_limit_exceeded', 'USER_RATE_LIMIT_MAX'],
  ['global_rate_limit_exceeded', 'GLOBAL_RATE_LIMIT_MAX'],
  ['too_many_calls', 'USER_CALLS_MAX'],
]);

/** Advice about a 429. `prefix` is the prefix of the endpoint's limit variables, such as `DCR`. */
export function adviseOnLimit(answer: ProbeAnswer, prefix: string): Advice {
  // §7.3: the token endpoint does not say which of its limits applied; for doctor it is the one per address.
  const isOAuthError = answer.json?.error === 'temporarily_unavailable';
  const variable = VARIABLES.get(isOAuthError ? 'rate_limit_exceeded' : readReason(answer));
  const wait = `try again ${describeWait(answer)}`;
  if (variable === undefined)
    return {
      remedy: `${wait}. It seems that a proxy in front refused the request, not the gateway.`,
    };
  return {
    setting: `${prefix}_${variable}`,
    remedy: `${wait}, or raise this limit on the gateway.`,
  };
}

/** Reads Retry-After (RFC 9110 §10.2.3), which the gateway sends in seconds. */
function describeWait({ headers }: ProbeAnswer) {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN);
  if (!Number.isFinite(seconds)) return 'later';
  if (seconds <= 90) return seconds === 1 ? 'in 1 second' : `in ${seconds} seconds`;
  return `in ${Math.ceil(seconds / 60)} minutes`;
}

/** `data` of a JSON-RPC error; empty if there is none. */
export function readErrorData({ json }: ProbeAnswer): JsonObject {
  const error = json?.error;
  return isObject(error) && isObject(error.data) ? error.data : {};
}

/** The reason that programs use to distinguish refusals. */
export function readReason(answer: ProbeAnswer): string | undefined {
  const { reason } = readErrorData(answer);
  return typeof reason === 'string' ? reason : undefined;
}

/** The error of RFC 6749 §5.2, or any other text of the body. */
export function readError({ status, json, text }: ProbeAnswer): string {
  const { error, error_description: description } = json ?? {};
  const words = [error, description].filter((one) => typeof one === 'string').join(': ');
  const said = words === '' ? readHeaderWords(text) : words;
  return `${status} ${said.slice(0, 300)}`.trim();
}

/** A JSON-RPC request over HTTP, as clients send it. */
export const createCall = (
  method: string,
  params: JsonObject = {},
  headers: Readonly<Record<string, string>> = {},
) => ({
  method: 'POST' as const,
  headers: {
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
    ...headers,
  },
  body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
});

/** The first call of a client without a token. */
export const MCP_CALL = createCall('tools/list');
