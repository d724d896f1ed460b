// Clients become known, and log in: from their authorization request to the provider's login page.

import { generateSecret, hashSha256 } from '../../platform/ids.ts';
import { HOW_TO_CHANGE_SECRET } from '../../store/seal/secrets.ts';
import { checkAuthorizationRequest } from './authorization.ts';
import {
  type Advice,
  defineCheck,
  type Finding,
  failure,
  LOGIN_NEEDS_STORE,
  ok,
  unknown,
  warning,
} from './finding.ts';
import type { Probe, ProbeAnswer } from './instruments.ts';
import { adviseOnLimit, readError, type Walk } from './walk.ts';

const LOGIN_CHECK = 'login';

export const loginCheck = defineCheck({
  section: 'Login',
  needsStore: LOGIN_NEEDS_STORE,
  async run(walk: Walk) {
    const outcome = await walk.logIn();
    return outcome && tellLogin(outcome);
  },
});

function tellLogin(outcome: LoginOutcome): Finding {
  switch (outcome.kind) {
    case 'at-provider':
      return ok(
        LOGIN_CHECK,
        `A login leads to ${new URL(outcome.url).host}${outcome.hasConsentPage ? ', by the consent page' : ''}.`,
      );
    case 'page-forgotten':
      return failure('replicas.secret', {
        what: 'The consent page counts as expired a moment after it was shown.',
        why: `The replica that got the answer cannot open what the one that showed the page has stored: their secrets differ. It says: ${outcome.said}`,
        setting: 'OAUTH_STATE_SECRET',
        remedy: `set the same list of secrets on all replicas, and the same REDIS_URL. ${HOW_TO_CHANGE_SECRET}`,
      });
    case 'client-forgotten':
      return failure('replicas.store', {
        what: 'The client that was registered a moment ago is unknown.',
        why: `The replica that was asked has another store than the one that registered it. It says: ${outcome.said}`,
        setting: 'REDIS_URL',
        remedy:
          'several replicas need the same REDIS_URL: without it each keeps its clients and sessions for itself.',
      });
    case 'limited':
      return unknown(LOGIN_CHECK, {
        what: 'whether a login works: the gateway has received too many (429).',
        ...outcome.advice,
      });
    case 'refused':
      return failure(LOGIN_CHECK, {
        what: `The gateway refuses a login: ${outcome.said}`,
        ...adviseOn(outcome.said),
      });
  }
}

/** Words of the gateway's own answers. */
const ADVICE: readonly (readonly [sign: RegExp, setting: string, remedy: string])[] = [
  [
    /OAUTH_\w+_URL is not set/,
    'OAUTH_MODE',
    'set OAUTH_MODE=broker, which finds the address by itself, or set the variable that is named.',
  ],
  [
    /OAUTH_CLIENT_ID is not set/,
    'OAUTH_CLIENT_ID',
    'register a client for the gateway at the provider, and set its ID.',
  ],
  [
    /discovery document/,
    'OIDC_ISSUER',
    'check that the provider runs and that the gateway can reach it; its log has the reason.',
  ],
  [
    /another browser, or cookies/,
    'BASE_URL',
    'have the proxy in front pass Cookie and Set-Cookie headers on.',
  ],
  [/resource/, 'BASE_URL', 'check that BASE_URL is the address that clients are given.'],
];

function adviseOn(said: string) {
  const [, setting, remedy] = ADVICE.find(([sign]) => sign.test(said)) ?? [];
  return setting === undefined || remedy === undefined
    ? { remedy: "the gateway's log says why." }
    : { setting, remedy };
}

/** Asks the provider about the request with which the browser comes to it. */
export const providerLoginCheck = defineCheck({
  section: 'Login',
  needsStore: LOGIN_NEEDS_STORE,
  async run({ logIn, probe }: Walk) {
    const outcome = await logIn();
    if (outcome?.kind !== 'at-provider') return [];
    return checkAuthorizationRequest(outcome.url, probe, {
      what: 'The login leads to a provider that does not answer here.',
      setting: 'OIDC_ISSUER',
      remedy:
        "start the provider, or check that users' browsers can reach it; the gateway may reach it by another way.",
    });
  },
});

const REGISTRATION_CHECK = 'registration';

/** RFC 7591, and client ID metadata documents: how clients become known. */
export const registrationCheck = defineCheck({
  section: 'Registration',
  needsStore: 'whether clients can register',
  async run(walk: Walk) {
    const document = await walk.readServerDocument();
    if (document === undefined) return [];
    const registration = await walk.register();
    return [
      registration === undefined
        ? warning(REGISTRATION_CHECK, {
            what: 'The metadata names no registration_endpoint.',
            why: 'Clients that register by themselves need a client ID instead. A Postern gateway always names one.',
            remedy:
              'check that this is the gateway, and that no proxy in front changes the document.',
          })
        : tellRegistration(registration),
      judgeSchemes(registration),
      document.client_id_metadata_document_supported === true
        ? ok('client-documents', 'Clients may also come with a client ID metadata document.')
        : ok('client-documents', {
            what: 'Client ID metadata documents are not offered, so clients register instead.',
            why: 'They are offered where CIMD_ALLOWED_HOSTS names hosts and the gateway reaches one of them.',
          }),
    ];
  },
});

function tellRegistration(registration: ProbeRegistration): Finding {
  switch (registration.kind) {
    case 'registered':
      return ok(
        REGISTRATION_CHECK,
        `Clients can register: this check did, as "postern doctor" (${registration.clientId}), which has no rights and is forgotten by itself.`,
      );
    case 'token-needed':
      return warning(REGISTRATION_CHECK, {
        what: 'Registration needs a token (DCR_ACCESS_TOKEN), which few clients send.',
        setting: 'DCR_ACCESS_TOKEN',
        remedy:
          'remove it to let clients register themselves, or give each client a client ID that you registered.',
      });
    case 'limited':
      return unknown(REGISTRATION_CHECK, {
        what: 'whether clients can register: the gateway has received too many registrations (429).',
        ...registration.advice,
      });
    case 'refused':
      return failure(REGISTRATION_CHECK, {
        what: `Clients cannot register: ${registration.said}.`,
        remedy: "the gateway's log says why.",
      });
  }
}

function judgeSchemes(registration: ProbeRegistration | undefined): Finding | undefined {
  if (registration?.kind !== 'registered' || registration.refusedSchemes === undefined)
    return undefined;
  return warning('registration.schemes', {
    what: `Editors that are called back by a scheme of their own (cursor://) cannot register: ${registration.refusedSchemes}`,
    setting: 'OAUTH_REDIRECT_SCHEMES',
    remedy:
      'list the schemes: OAUTH_REDIRECT_SCHEMES=cursor,vscode. Or set OAUTH_MODE=broker, which allows them.',
  });
}

// A login as a client and a browser begin it: the client registers (RFC 7591), and logs in as far as the provider, where a person would be
// asked.

export interface LoginClient {
  readonly clientId: string;
  readonly redirectUri: string;
}

interface LoginAttempt extends LoginClient {
  readonly authorizationUrl: string;
  readonly resource: string;
  /** True where another login may reach another replica. */
  readonly mayHaveReplicas: boolean;
  readonly probe: Probe;
}

type LoginOutcome =
  /** The authorization request that the gateway sends to the provider. */
  | { readonly kind: 'at-provider'; readonly url: string; readonly hasConsentPage: boolean }
  /** The registration from a moment ago is unknown. */
  | { readonly kind: 'client-forgotten'; readonly said: string }
  /** The consent page from a moment ago counts as expired. */
  | { readonly kind: 'page-forgotten'; readonly said: string }
  | { readonly kind: 'limited'; readonly advice: Advice }
  | { readonly kind: 'refused'; readonly said: string };

/** Each login opens connections of its own, which may lead to another replica. */
const ROUNDS = 3;

/**
 * The first outcome that is not the provider, or the last. Each round counts in the limit that the user's own
 * browser meets, so there are several only where replicas may differ and half of the limit is left.
 *
 * @throws FetchError
 */
export async function logInAsClient(attempt: LoginAttempt): Promise<LoginOutcome> {
  const rounds = attempt.mayHaveReplicas ? ROUNDS : 1;
  let { outcome: last, isHalfLeft } = await beginLogin(attempt);
  for (let round = 1; round < rounds && isHalfLeft && last.kind === 'at-provider'; round += 1) {
    const next = await beginLogin(attempt);
    if (next.outcome.kind !== 'limited') last = next.outcome;
    isHalfLeft = next.isHalfLeft;
  }
  return last;
}

interface BegunLogin {
  readonly outcome: LoginOutcome;
  /** True while half of the logins that the limit of the address allows are left. */
  readonly isHalfLeft: boolean;
}

async function beginLogin({
  authorizationUrl,
  clientId,
  redirectUri,
  resource,
  probe,
}: LoginAttempt): Promise<BegunLogin> {
  const url = new URL(authorizationUrl);
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
  const isHalfLeft = readHalfLeft(answer);
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

/** True where there is no limit. */
function readHalfLeft({ headers }: ProbeAnswer): boolean {
  const read = (name: string) => Number(headers.get(name) ?? Number.NaN);
  return !(read('x-ratelimit-remaining') * 2 < read('x-ratelimit-limit'));
}

function judgeLogin(
  answer: ProbeAnswer,
  redirectUri: string,
  hasConsentPage: boolean,
): LoginOutcome {
  const { href, searchParams } = answer.location ?? {};
  if (href?.startsWith(`${redirectUri}?`)) {
    const said = ['error', 'error_description'].map((name) => searchParams?.get(name));
    return { kind: 'refused', said: said.filter(Boolean).join(': ') };
  }
  if (href !== undefined) return { kind: 'at-provider', url: href, hasConsentPage };
  const said = readError(answer);
  if (answer.status === 429)
    return {
      kind: 'limited',
      advice: adviseOnLimit(answer, hasConsentPage ? 'OAUTH_CONSENT' : 'OAUTH_AUTHORIZE'),
    };
  if (answer.json?.error === 'invalid_client') return { kind: 'client-forgotten', said };
  return hasConsentPage && /page has expired/.test(said)
    ? { kind: 'page-forgotten', said }
    : { kind: 'refused', said };
}

interface ConsentForm {
  readonly action: string;
  readonly body: string;
}

/** The form of the consent page, answered with yes: it is about doctor's own client. */
function readConsentForm({ status, text, url }: ProbeAnswer): ConsentForm | undefined {
  const [, action] =
    /<form\b[^<>]* method="post" action="([^"<>]+\/oauth\/consent)">/.exec(text) ?? [];
  if (status !== 200 || action === undefined || !URL.canParse(action, url)) return undefined;
  const fields = text.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]+)">/g);
  const form = new URLSearchParams();
  for (const [, name = '', value = ''] of fields) form.append(name, value);
  form.set('decision', 'approve');
  return { action: new URL(action, url).href, body: form.toString() };
}

type ProbeRegistration =
  | {
      readonly kind: 'registered';
      readonly clientId: string;
      /** Schemes of editors are refused, so these were left out. */
      readonly refusedSchemes: string | undefined;
    }
  | { readonly kind: 'token-needed' }
  | { readonly kind: 'limited'; readonly advice: Advice }
  | { readonly kind: 'refused'; readonly said: string };

/** The address at which doctor says that it could be called back; nobody listens there, and nothing is sent there. */
export const LOOPBACK_REDIRECT_URI = 'http://127.0.0.1:33418/callback';

/** The scheme of an editor that is called back by one of its own (RFC 8252 §7.1). */
export const EDITOR_SCHEME = 'cursor';
const EDITOR_REDIRECT_URI = `${EDITOR_SCHEME}://anysphere.cursor-mcp/oauth/callback`;

/** Once: few registrations are allowed in an hour. `refusesEditors`: where the settings at hand say so, it is not tried. @throws FetchError */
export async function register(
  url: string,
  probe: Probe,
  refusesEditors: boolean,
): Promise<ProbeRegistration> {
  if (refusesEditors) {
    const answer = await send(url, [LOOPBACK_REDIRECT_URI], probe);
    return judgeRegistration(answer, `OAUTH_REDIRECT_SCHEMES does not list ${EDITOR_SCHEME}.`);
  }
  const withEditor = await send(url, [LOOPBACK_REDIRECT_URI, EDITOR_REDIRECT_URI], probe);
  if (withEditor.json?.error !== 'invalid_redirect_uri')
    return judgeRegistration(withEditor, undefined);
  return judgeRegistration(await send(url, [LOOPBACK_REDIRECT_URI], probe), readError(withEditor));
}

function judgeRegistration(
  answer: ProbeAnswer,
  refusedSchemes: string | undefined,
): ProbeRegistration {
  const clientId = answer.json?.client_id;
  if (answer.status === 201 && typeof clientId === 'string') {
    return { kind: 'registered', clientId, refusedSchemes };
  }
  if (answer.status === 401) return { kind: 'token-needed' };
  return answer.status === 429
    ? { kind: 'limited', advice: adviseOnLimit(answer, 'DCR') }
    : { kind: 'refused', said: readError(answer) };
}

const send = (url: string, redirectUris: readonly string[], probe: Probe): Promise<ProbeAnswer> =>
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
