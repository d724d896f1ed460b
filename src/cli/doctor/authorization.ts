// Checks the gateway's authorization request at the provider, without a login. With `prompt=none` (OpenID Connect Core §3.1.2.1)
// the provider shows no page: it redirects to the redirect URI with `login_required`, which is only allowed if it knows that URI.
// The checks never follow redirects.
import {
  buildLoginRequest,
  buildProviderRequest,
  chooseProviderScope,
} from '../../logins/broker/login.ts';
import { generateSecret, hashSha256 } from '../../platform/ids.ts';
import { quote } from '../../platform/text.ts';
import { type Advice, defineCheck, type Found, failure, ok, unknown, warning } from './finding.ts';
import {
  describeNetworkFailure,
  type Probe,
  type ProbeAnswer,
  readHeaderWords,
} from './instruments.ts';
import { LOOPBACK_REDIRECT_URI } from './log-in.ts';
import { defineProviderCheck, findBrokerConfig, type SettingsAtHand } from './settings-at-hand.ts';

type AuthorizationOutcome = Awaited<ReturnType<typeof askAuthorization>>;

/** Errors that only mean that no user is logged in (OpenID Connect Core §3.1.2.6). */
const NEEDS_USER = new Set([
  'login_required',
  'interaction_required',
  'consent_required',
  'account_selection_required',
  // Google's older name for login_required.
  'immediate_failed',
]);

/** Registered by no client: names below `.invalid` cannot be owned (RFC 6761 §6.4). */
const FOREIGN_REDIRECT_URI = 'https://postern-doctor.invalid/oauth/callback';

/** @throws FetchError */
async function askAuthorization(url: string, probe: Probe) {
  const redirectUri = new URL(url).searchParams.get('redirect_uri') ?? '';
  const silent = await probe(replaceParameter(url, 'prompt', 'none'));
  const back = readReturn(silent, redirectUri);
  if (back !== undefined) return judgeReturn(back);

  // Not every provider supports prompt=none: does it treat the redirect URI differently from a foreign one?
  const [own, foreign] = await Promise.all([
    probe(url),
    probe(replaceParameter(url, 'redirect_uri', FOREIGN_REDIRECT_URI)),
  ]);
  const returned = readReturn(own, redirectUri);
  if (returned !== undefined) return judgeReturn(returned);
  const said = [silent, own].map(readErrorText).find((text) => text !== undefined);
  if (said === undefined)
    // The same page for any redirect URI is inconclusive.
    return computeSignature(own) === computeSignature(foreign)
      ? { kind: 'not-told' as const }
      : ACCEPTED;
  if (/redirect[ _-]?(ur[il]|mismatch)|reply ur[il]|callback|AADSTS50011/i.test(said))
    return { kind: 'redirect-uri-unknown' as const, said };
  if (/client|application|AADSTS700016/i.test(said))
    return { kind: 'client-unknown' as const, said };
  // The provider rejects the request without saying why.
  return { kind: 'error-page' as const, said };
}

/** The provider knows the client and the redirect URI, and would let a user log in. */
const ACCEPTED = { kind: 'accepted' } as const;

function replaceParameter(url: string, name: string, value: string) {
  const changed = new URL(url);
  changed.searchParams.set(name, value);
  return changed.href;
}

/** The parameters of the redirect back to the gateway; undefined for any other response. */
function readReturn({ location }: ProbeAnswer, redirectUri: string) {
  const isBack = location?.href === redirectUri || location?.href.startsWith(`${redirectUri}?`);
  return isBack ? location?.searchParams : undefined;
}

function judgeReturn(parameters: URLSearchParams) {
  const error = parameters.get('error');
  if (error === null || NEEDS_USER.has(error)) return ACCEPTED;
  // The provider knows both, and rejects another part of the request (RFC 6749 §4.1.2.1).
  const said = [error, parameters.get('error_description')].filter(Boolean).join(': ');
  return { kind: 'refused' as const, error, said };
}

/** Extracts the message of an error page, or from its URL; undefined if there is no error. */
function readErrorText({ status, text, location }: ProbeAnswer) {
  if (location !== undefined) {
    // Some providers redirect to an error page with the message in its URL; Google encodes it in base64.
    const { pathname, searchParams } = location;
    const coded = Buffer.from(searchParams.get('authError') ?? '', 'base64').toString();
    const said = ['error', 'error_description'].map((name) => searchParams.get(name));
    const words = [coded, ...said].filter(Boolean).join(' ');
    return /\/error\b/.test(pathname) || coded !== '' ? readHeaderWords(words) : undefined;
  }
  if (status < 400 && !/AADSTS\d+/.test(text)) return undefined;
  const aadsts = /AADSTS\d+:[^"<\\]{0,300}/.exec(text)?.[0];
  return aadsts ?? readHeaderWords(text);
}

/** Computes a signature that differs between a login page and an error page. */
function computeSignature({ status, location }: ProbeAnswer) {
  if (location === undefined) return String(status);
  const { origin, pathname } = location;
  // Some providers put the ID of the attempt into the path.
  return `${status} ${origin} ${pathname.split('/').slice(0, 2).join('/')}`;
}

/**
 * Tests an authorization request at the provider, from these settings or from the running gateway. Returns `unreachable` on a
 * network failure.
 */
export async function checkAuthorizationRequest(
  url: string,
  probe: Probe,
  unreachable: string,
  advice: Advice,
): Promise<Found> {
  try {
    return judgeAuthorization(await askAuthorization(url, probe), url);
  } catch (error) {
    const { text } = describeNetworkFailure(error, url);
    return failure('provider.reachable', `${unreachable} ${text}`, advice);
  }
}

const CHECK = 'provider.redirect-uri';

/** `url` is the authorization request. */
function judgeAuthorization(outcome: AuthorizationOutcome, url: string) {
  const { searchParams, host } = new URL(url);
  const redirectUri = searchParams.get('redirect_uri') ?? '';
  const clientId = searchParams.get('client_id') ?? '';
  switch (outcome.kind) {
    case 'accepted':
      return ok(
        CHECK,
        `The provider knows the client ${quote(clientId)} and its redirect URI ${redirectUri}.`,
      );
    case 'redirect-uri-unknown':
      return failure(CHECK, `The provider does not know the redirect URI ${redirectUri}.`, {
        why: `It says: ${outcome.said}`,
        setting: 'BASE_URL',
        remedy: `register exactly ${redirectUri} for the client ${quote(clientId)} at the provider. If the address is not yours, correct BASE_URL.`,
      });
    case 'client-unknown':
      return failure(
        'provider.client-id',
        `The provider does not know the client ${quote(clientId)}, or does not let it log users in.`,
        {
          why: `It says: ${outcome.said}`,
          setting: 'OAUTH_CLIENT_ID',
          remedy:
            'set it to the client ID as the provider shows it, and check that OIDC_ISSUER names the tenant or realm in which the client is.',
        },
      );
    case 'refused':
      return failure(
        'provider.authorization-request',
        `The provider refuses the gateway's authorization request: ${outcome.said}`,
        REFUSALS[outcome.error] ?? {
          setting: 'OAUTH_ADDED_SCOPES, OAUTH_ADDED_PARAMETERS',
          remedy: "compare the gateway's request with the client's settings at the provider.",
        },
      );
    case 'error-page':
      return failure(
        'provider.authorization-request',
        'The provider shows an error page instead of a login page.',
        {
          why: `It says: ${outcome.said}`,
          setting: 'OAUTH_CLIENT_ID',
          remedy: `check the client ${quote(clientId)} and its redirect URI ${redirectUri} at the provider.`,
        },
      );
    case 'not-told':
      return unknown(
        CHECK,
        `whether ${host} knows the redirect URI ${redirectUri}: it only reports this after a login.`,
        {
          remedy: 'compare it with the one registered at the provider, character by character.',
        },
      );
  }
}

const REFUSALS: Readonly<Record<string, Advice>> = {
  invalid_scope: {
    setting: 'OAUTH_ADDED_SCOPES, OAUTH_ALLOWED_SCOPES',
    remedy:
      'name only scopes that the client has at the provider, and allow it openid, profile and email, which the gateway always requests.',
  },
  unauthorized_client: {
    setting: 'OAUTH_CLIENT_ID',
    remedy: 'allow the authorization code grant for this client at the provider.',
  },
  access_denied: {
    setting: 'OAUTH_CLIENT_ID',
    remedy: 'let the client log users in at the provider (by a policy or a grant that names it).',
  },
};

// Redirect URI and scopes: would the provider let a user log in through the gateway?

export const authorizationCheck = defineProviderCheck(
  "The gateway's client at the provider",
  async ({ config, probe }, { endpoints }) => {
    // In proxy mode, clients use their own redirect URIs.
    const oauth = findBrokerConfig(config);
    if (oauth === undefined) return [];
    const scope = await chooseProviderScope(oauth, endpoints, undefined);
    const authorizationUrl = await endpoints.findAuthorizationUrl().catch(() => undefined);
    if (authorizationUrl === undefined) return [];
    // The same request as the broker's.
    const login = {
      baseUrl: config.server.baseUrl,
      clientId: oauth.providerClient.id,
      scope,
      state: generateSecret(),
      codeVerifier: generateSecret(),
      nonce: generateSecret(),
    };
    const url = buildLoginRequest(authorizationUrl, login, oauth.addedParameters);
    const unreachable = "The provider's authorization endpoint cannot be reached.";
    return checkAuthorizationRequest(url, probe, unreachable, {
      setting: 'OAUTH_AUTHORIZATION_URL',
      remedy: 'remove it, so that the discovery document names the endpoint, or correct it.',
    });
  },
);

/** In proxy mode, clients use their own redirect URIs, which the provider has to know. */
export const proxyRedirectsCheck = defineCheck({
  section: "The gateway's client at the provider",
  async run(settings: SettingsAtHand) {
    const url = buildProxyRequest(settings);
    if (url === undefined) return [];
    const outcome = await askAuthorization(url, settings.probe);
    if (outcome.kind !== 'accepted' && outcome.kind !== 'redirect-uri-unknown')
      return judgeAuthorization(outcome, url);
    const unknownUris = await findClientsOwnRedirects(settings);
    return unknownUris.size === 0
      ? ok('provider.redirect-uri', 'The provider knows the redirect URIs of all known clients.')
      : warning(
          'provider.redirect-uri',
          `The provider does not know the redirect URIs ${[...unknownUris].join(', ')}.`,
          {
            why: 'In proxy mode it has to know those of every client that your users have.',
            setting: 'OAUTH_MODE',
            remedy:
              'set OAUTH_MODE=broker: the provider then has to know one, <BASE_URL>/oauth/callback. Or register those that your users need.',
          },
        );
  },
});

/** The redirect URIs that the provider does not know; empty if it only sees the gateway's own. */
export async function findClientsOwnRedirects(
  settings: SettingsAtHand,
): Promise<ReadonlySet<string>> {
  const url = buildProxyRequest(settings);
  return url === undefined
    ? new Set()
    : findUnknownRedirectUris(url, settings.config.server.baseUrl, settings.probe);
}

/** Builds the request of a client that the gateway redirects to the provider; undefined if it redirects none. */
function buildProxyRequest({ config: { oauth } }: SettingsAtHand) {
  const { authorizationUrl } = oauth.endpoints;
  const { id } = oauth.providerClient;
  if (oauth.mode === 'broker' || authorizationUrl === undefined || id === undefined)
    return undefined;
  return buildProviderRequest(authorizationUrl, [
    ['client_id', id],
    ['redirect_uri', LOOPBACK_REDIRECT_URI],
    ['response_type', 'code'],
    ['scope', 'openid'],
    ['state', generateSecret()],
    ['code_challenge', hashSha256(generateSecret())],
    ['code_challenge_method', 'S256'],
  ]);
}

// The clients in docs/clients.md, with their requirements for a login.

export interface KnownClient {
  /** The name in docs/clients.md. */
  readonly name: string;
  /** `document`: uses a client ID metadata document if the gateway supports it, otherwise registers. */
  readonly becomesKnown: 'registers' | 'document' | 'client ID';
  /** True if the client compares the issuer of the metadata with its address; undefined if unknown. */
  readonly comparesIssuer: boolean | undefined;
  /** The address that the browser returns to; a loopback address may have any port. */
  readonly redirectUri: string;
  /** The vendor's servers connect to the gateway, not the user's machine. */
  readonly isHosted?: true;
}

const LOCALHOST = 'http://localhost:33418/callback';

/** A client that registers, and listens on a loopback port. */
const program = (
  name: string,
  { comparesIssuer, ...other }: Partial<KnownClient> = {},
): KnownClient => ({
  name,
  becomesKnown: 'registers',
  comparesIssuer,
  redirectUri: LOOPBACK_REDIRECT_URI,
  ...other,
});

const programs = (...names: readonly string[]) => names.map((name) => program(name));

/** The tested clients in the order of that table, then the untested ones. */
export const KNOWN_CLIENTS: readonly KnownClient[] = [
  program('TypeScript SDK 1.x', { comparesIssuer: false }),
  program('TypeScript SDK 2.x', { comparesIssuer: true }),
  ...programs('Python SDK 1.x', 'Python SDK 2.x', 'FastMCP'),
  program('Claude Code', { becomesKnown: 'document', redirectUri: LOCALHOST }),
  program('Codex', { becomesKnown: 'document' }),
  program('Gemini CLI', { redirectUri: LOCALHOST }),
  ...programs('OpenCode', 'Kilo CLI', 'Copilot CLI'),
  program('Qwen Code', { redirectUri: LOCALHOST }),
  ...programs('Cline CLI', 'Continue CLI'),
  program('Inspector', { redirectUri: LOCALHOST }),
  program('mcp-remote', { redirectUri: LOCALHOST }),
  ...programs('mcporter', 'mcpc', 'mcp-cli', 'AI SDK', 'LangChain.js'),
  program('Mastra', { becomesKnown: 'client ID' }),
  ...programs('OpenAI Agents JS', 'LangChain', 'Pydantic AI', 'OpenAI Agents', 'LlamaIndex'),
  ...programs('mcp-use', 'Strands', 'Google ADK'),
  program('Claude (web, desktop, mobile)', {
    becomesKnown: 'document',
    redirectUri: 'https://claude.ai/api/mcp/auth_callback',
    isHosted: true,
  }),
  program('ChatGPT', {
    becomesKnown: 'document',
    redirectUri: 'https://chatgpt.com/connector_platform_oauth_redirect',
    isHosted: true,
  }),
  program('Cursor', { redirectUri: 'cursor://anysphere.cursor-mcp/oauth/callback' }),
  program('VS Code', { becomesKnown: 'document', redirectUri: 'http://127.0.0.1:33418/' }),
];

/**
 * Finds redirect URIs of known clients that the provider does not know. Only in proxy mode, where the provider sees them instead
 * of the gateway's own. `url` is an authorization request to the provider, `baseUrl` that of the gateway.
 *
 * @throws FetchError
 */
export async function findUnknownRedirectUris(
  url: string,
  baseUrl: string,
  probe: Probe,
): Promise<ReadonlySet<string>> {
  const sent = new URL(url).searchParams.get('redirect_uri') ?? '';
  const unknownUris = new Set<string>();
  if (sent === `${baseUrl}/oauth/callback`) return unknownUris;
  for (const redirectUri of new Set(KNOWN_CLIENTS.map((client) => client.redirectUri))) {
    const asked = replaceParameter(url, 'redirect_uri', redirectUri);
    const { kind } = await askAuthorization(asked, probe);
    if (kind === 'redirect-uri-unknown') unknownUris.add(redirectUri);
  }
  return unknownUris;
}
