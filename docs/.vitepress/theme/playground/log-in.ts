// §19.3: a login as MCP clients make it: found out, sent to the provider, and back with a code. Tokens stay in memory.
import { type Draft, readDraft } from './draft.ts';
import { createVisit, type Exchange, type Send } from './exchange.ts';
import { type JsonObject, parseObject, readText } from './json.ts';
import type { Era } from './messages.ts';
import { createPkce, createRandomText } from './pkce.ts';
import { describeError, redeemCode, type TokenServer, type Tokens } from './tokens.ts';

export interface LogInSettings {
  readonly mcpUrl: string;
  readonly clientId: string;
  readonly redirectUri: string;
}

/** What has to survive the way over the provider. None of it is worth anything without the tab that has it. */
interface PendingLogIn {
  readonly clientId: string;
  readonly state: string;
  readonly verifier: string;
  readonly tokenEndpoint: string;
  readonly revocationEndpoint: string | undefined;
  /** `iss` that the answer has to carry (RFC 9207); undefined where none is promised. */
  readonly issuer: string | undefined;
  /** The page to show then. */
  readonly returnTo: string;
  /** The revision of MCP that was chosen before. */
  readonly era: Era;
  readonly exchanges: readonly Exchange[];
  readonly draft: Draft | undefined;
}

const STORAGE_KEY = 'postern-playground-login';
const SCOPE = 'openid profile email';

/** Ends with the browser on its way to the provider. @throws Error in words for the user. */
export async function beginLogIn(
  { mcpUrl, clientId, redirectUri }: LogInSettings,
  { send, listExchanges, returnTo, era, draft }: BeginDeps,
): Promise<void> {
  requireSecureContext();
  const metadata = await discover(mcpUrl, send);
  const endpoint = requireText(metadata, 'authorization_endpoint');
  const { verifier, challenge } = await createPkce();
  const loginState = createRandomText();
  const url = new URL(endpoint);
  for (const [name, value] of [
    ['client_id', clientId],
    ['redirect_uri', redirectUri],
    ['response_type', 'code'],
    ['scope', SCOPE],
    ['state', loginState],
    ['code_challenge', challenge],
    ['code_challenge_method', 'S256'],
    ['resource', mcpUrl],
  ] as const) {
    url.searchParams.set(name, value);
  }
  const visit = createVisit(
    'Go to the login page',
    'The browser itself goes there, with the challenge of a verifier that only this tab has (PKCE), and a state that has to be returned. It returns with a code.',
    url.href,
  );
  const pending: PendingLogIn = {
    clientId,
    state: loginState,
    verifier,
    tokenEndpoint: requireText(metadata, 'token_endpoint'),
    revocationEndpoint: readText(metadata, 'revocation_endpoint'),
    issuer:
      metadata.authorization_response_iss_parameter_supported === true
        ? requireText(metadata, 'issuer')
        : undefined,
    returnTo,
    era,
    exchanges: [...listExchanges(), visit],
    draft,
  };
  sessionStorage.setItem(STORAGE_KEY, JSON.stringify(pending));
  location.assign(url);
}

export interface BeginDeps {
  readonly send: Send;
  /** What was shown so far. */
  listExchanges(): readonly Exchange[];
  readonly returnTo: string;
  readonly era: Era;
  /** What was being entered. */
  readonly draft: Draft | undefined;
}

/** As every MCP client finds its way: refused, told where to look, and there told where to log in. */
async function discover(mcpUrl: string, send: Send): Promise<JsonObject> {
  const refused = await send({
    title: 'Ask without a token',
    note: 'The gateway refuses the request, and names the metadata for logging in in WWW-Authenticate.',
    method: 'POST',
    url: mcpUrl,
    headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {} },
    }),
  });
  await refused.text();
  const challenge = refused.headers.get('WWW-Authenticate') ?? '';
  const resourceUrl = /resource_metadata="([^"]+)"/.exec(challenge)?.[1];
  if (resourceUrl === undefined) {
    throw new Error(`The gateway answered ${refused.status} without saying where to log in.`);
  }
  const resource = await getJson(send, {
    title: 'Read the resource metadata',
    note: 'Which authorization server issues tokens for this address (RFC 9728).',
    url: resourceUrl,
  });
  const [server] = Array.isArray(resource.authorization_servers)
    ? resource.authorization_servers
    : [];
  if (typeof server !== 'string') throw new Error('The metadata names no authorization server.');
  return getJson(send, {
    title: 'Read the authorization server metadata',
    note: 'The endpoints for the browser and for redeeming the code (RFC 8414).',
    url: `${server.replace(/\/$/, '')}/.well-known/oauth-authorization-server`,
  });
}

async function getJson(
  send: Send,
  step: { readonly title: string; readonly note: string; readonly url: string },
): Promise<JsonObject> {
  const answer = await send({ ...step, method: 'GET', headers: { Accept: 'application/json' } });
  const document = parseObject(await answer.text());
  if (answer.status !== 200 || document === undefined) {
    throw new Error(`${step.url} answered ${answer.status}: ${describeError(document)}`);
  }
  return document;
}

/** A login that this tab began. */
export interface FinishedLogIn {
  readonly tokens: Tokens;
  readonly server: TokenServer;
  readonly returnTo: string;
  readonly era: Era;
  readonly draft: Draft | undefined;
}

/** A login that this tab began and never came back from; none is kept after that. */
export interface UnfinishedLogIn {
  readonly exchanges: readonly Exchange[];
  readonly era: Era;
  readonly draft: Draft | undefined;
}

export function takeUnfinishedLogIn(): UnfinishedLogIn | undefined {
  const pending = readPending();
  sessionStorage.removeItem(STORAGE_KEY);
  return pending;
}

/**
 * The steps before the browser left, and where it came back; none where no login began in this tab. `address` is that
 * of this page.
 */
export const listEarlierExchanges = (address: string): readonly Exchange[] =>
  (readPending()?.exchanges ?? []).map((exchange) =>
    exchange.isVisit ? { ...exchange, cameBackAt: address } : exchange,
  );

/** `query` is that of the page that the provider, or the gateway, came back to. @throws Error in words for the user. */
export async function finishLogIn(
  query: string,
  { mcpUrl, redirectUri }: Pick<LogInSettings, 'mcpUrl' | 'redirectUri'>,
  send: Send,
): Promise<FinishedLogIn> {
  const pending = readPending();
  sessionStorage.removeItem(STORAGE_KEY);
  const { value, ...begun } = checkAnswer(new URLSearchParams(query), pending);
  const { clientId, tokenEndpoint, revocationEndpoint, verifier, returnTo, era, draft } = begun;
  const server = { tokenEndpoint, revocationEndpoint, clientId, resource: mcpUrl };
  const tokens = await redeemCode(server, { value, verifier, redirectUri }, send).catch(
    (error: Error) => {
      throw new Error(`The login was not completed: ${error.message}`);
    },
  );
  return { tokens, server, returnTo, era, draft };
}

/** RFC 6749 §10.12, RFC 9207: the answer to what this tab asked, and from whom it asked. */
function checkAnswer(parameters: URLSearchParams, pending: PendingLogIn | undefined) {
  if (pending === undefined || parameters.get('state') !== pending.state) {
    throw new Error(
      'This page did not start the login that has just returned here. Start it again below.',
    );
  }
  if (pending.issuer !== undefined && parameters.get('iss') !== pending.issuer) {
    throw new Error('The response comes from a different server than the one that was contacted.');
  }
  const error = parameters.get('error');
  if (error !== null) {
    throw new Error(parameters.get('error_description') ?? `The login failed: ${error}.`);
  }
  const value = parameters.get('code');
  if (value === null) throw new Error('The response has no code.');
  return { ...pending, value };
}

function readPending(): PendingLogIn | undefined {
  const stored = parseObject(sessionStorage.getItem(STORAGE_KEY) ?? '');
  const clientId = readText(stored, 'clientId');
  const state = readText(stored, 'state');
  const verifier = readText(stored, 'verifier');
  const tokenEndpoint = readText(stored, 'tokenEndpoint');
  if (
    clientId === undefined ||
    state === undefined ||
    verifier === undefined ||
    tokenEndpoint === undefined
  )
    return undefined;
  return {
    clientId,
    state,
    verifier,
    tokenEndpoint,
    revocationEndpoint: readText(stored, 'revocationEndpoint'),
    issuer: readText(stored, 'issuer'),
    returnTo: readText(stored, 'returnTo') ?? '/playground',
    era: readText(stored, 'era') === 'stateless' ? 'stateless' : 'session',
    exchanges: Array.isArray(stored?.exchanges) ? stored.exchanges : [],
    draft: readDraft(stored?.draft),
  };
}

function requireText(metadata: JsonObject, name: string): string {
  const value = readText(metadata, name);
  if (value === undefined) throw new Error(`The authorization server's metadata lacks ${name}.`);
  return value;
}

function requireSecureContext(): void {
  if (!isSecureContext) {
    throw new Error(
      'Logging in needs browser features that require https or localhost. Open this page at its https address.',
    );
  }
}
