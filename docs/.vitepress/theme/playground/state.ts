// The one connection of this tab. The front page and the playground share it; a reload forgets it.
import { computed, reactive, readonly } from 'vue';
import { keepOperatorToken } from '../admin/operator.ts';
import { createAccess } from './access.ts';
import type { Draft } from './draft.ts';
import { createSend, type Exchange, restoreExchanges } from './exchange.ts';
import { type Facts, type LogInFacts, loadFacts } from './facts.ts';
import { isObject, type JsonObject, readText } from './json.ts';
import { beginLogIn, finishLogIn, listEarlierExchanges, takeUnfinishedLogIn } from './log-in.ts';
import { createMcpClient, type McpClient, type McpRequest } from './mcp-client.ts';
import { CallError, type CallListener, type Era } from './messages.ts';
import { renewTokens, revokeToken, type TokenServer } from './tokens.ts';

/** What there is, as the lists of the gateway have it. */
export interface Inventory {
  readonly tools: readonly JsonObject[];
  readonly prompts: readonly JsonObject[];
  readonly resources: readonly JsonObject[];
  readonly templates: readonly JsonObject[];
}

export interface Limits {
  readonly remaining: number;
  readonly limit: number;
}

interface State {
  facts: Facts | undefined;
  phase: 'loading' | 'disconnected' | 'working' | 'connected';
  /** There is a token. */
  isLoggedIn: boolean;
  era: Era;
  failure: string | undefined;
  /** What is over, and has to be begun again before there are more calls. */
  ended: 'login' | 'session' | undefined;
  exchanges: Exchange[];
  inventory: Inventory;
  limits: Limits | undefined;
  /** Epoch milliseconds. */
  sessionEndsAt: number | undefined;
  tokenEndsAt: number | undefined;
  /** Undefined where the token is not renewed. */
  tokenRenewsAt: number | undefined;
  /** Why it could not be renewed. */
  renewalFailure: string | undefined;
  /** What servers are told that ask for roots: URIs. */
  roots: readonly string[];
}

const OPERATORS_PAGE = '/admin';

const EMPTY: Inventory = { tools: [], prompts: [], resources: [], templates: [] };

const state: State = reactive({
  facts: undefined,
  phase: 'loading',
  isLoggedIn: false,
  era: 'session',
  failure: undefined,
  ended: undefined,
  exchanges: [],
  inventory: EMPTY,
  limits: undefined,
  sessionEndsAt: undefined,
  tokenEndsAt: undefined,
  tokenRenewsAt: undefined,
  renewalFailure: undefined,
  roots: [],
});

/** What is being entered: nothing on the page depends on it until there is a new connection. */
let draft: Draft | undefined;

/** Where the login was; undefined for a token from elsewhere. */
let tokenServer: TokenServer | undefined;
let client: McpClient | undefined;

const MAX_EXCHANGES = 200;

const send = createSend({
  show(exchange) {
    state.exchanges.push(exchange);
    if (state.exchanges.length > MAX_EXCHANGES) state.exchanges.shift();
    return state.exchanges.at(-1) ?? exchange;
  },
  getToken: () => access.getToken(),
  replaceToken: (token) => access.replace(token),
});

const access = createAccess({
  async renew(refreshToken) {
    if (tokenServer === undefined) throw new Error('This tab did not log in.');
    const renewed = await renewTokens(tokenServer, refreshToken, send);
    state.renewalFailure = undefined;
    if (state.ended === 'login') state.ended = undefined;
    return renewed;
  },
  noteTimes({ endsAt, renewsAt }) {
    state.tokenEndsAt = endsAt;
    state.tokenRenewsAt = renewsAt;
  },
  noteFailure(reason) {
    state.renewalFailure = reason;
  },
  noteEnd() {
    state.ended = 'login';
  },
});

export const playground = readonly(state);

/** Whether this page was opened at the address that the gateway goes by: the policy allows calls to no other. */
export const isAtHome = computed(
  () => state.facts === undefined || new URL(state.facts.baseUrl).origin === location.origin,
);

/** Nothing can be chosen yet, or for the moment. */
export const isBusy = computed(() => state.phase === 'loading' || state.phase === 'working');

/** `isCallback`: this page was opened with the answer to a login. */
export async function start(isCallback = false): Promise<void> {
  if (state.facts !== undefined) return nameTab(state.facts);
  addEventListener('pageshow', ({ persisted }) => {
    if (persisted && state.phase === 'working') noteUnfinishedLogIn();
  });
  await attempt(async () => {
    state.facts = await loadFacts();
    nameTab(state.facts);
    // A callback goes on with the login: what is chosen in between would be lost.
    state.phase = isCallback ? 'working' : 'disconnected';
    if (!isCallback) noteUnfinishedLogIn();
  });
}

/** The gateway goes by its own name, which the built pages cannot know. */
function nameTab({ name }: Facts): void {
  document.title = document.title.replace(/[^·]*$/, () => ` ${name}`);
}

/** Somebody came back from the login page by other ways than through it. */
function noteUnfinishedLogIn(): void {
  const left = takeUnfinishedLogIn();
  if (left === undefined) return;
  state.phase = 'disconnected';
  state.exchanges = restoreExchanges(left.exchanges);
  state.era = left.era;
  draft = left.draft;
  const { provider, mode } = state.facts?.login ?? {};
  state.failure =
    mode === 'proxy'
      ? `The login did not return here. If ${provider} complained about the redirect URI: the redirect URI of this page, shown below, must be registered there.`
      : 'The login did not return here. Start it again.';
}

/** The browser leaves this page. `returnTo` is the path to show then. */
export async function logIn(returnTo: '/' | '/playground' | '/admin'): Promise<void> {
  await attempt(async () => {
    const settings = requireLogInSettings(returnTo);
    state.exchanges = [];
    state.phase = 'working';
    await beginLogIn(settings, {
      send,
      listExchanges: () => [...state.exchanges],
      returnTo,
      era: state.era,
      draft,
    });
  });
}

/** Resolves to the path to show, where the login succeeded. */
export async function completeLogIn(query: string): Promise<string | undefined> {
  let returnTo: string | undefined;
  await attempt(async () => {
    state.phase = 'working';
    const { mcpUrl } = requireFacts();
    const { redirectUri } = requireLogIn();
    state.exchanges = restoreExchanges(listEarlierExchanges(`${redirectUri}${query}`));
    const finished = await finishLogIn(query, { mcpUrl, redirectUri }, send);
    state.era = finished.era;
    returnTo = finished.returnTo;
    // The operators' page needs no session, and its token is for nothing else.
    if (returnTo === OPERATORS_PAGE) {
      keepOperatorToken(finished.tokens.accessToken);
      state.phase = 'disconnected';
      return;
    }
    tokenServer = finished.server;
    access.set(finished.tokens);
    state.isLoggedIn = true;
    draft = finished.draft;
    await openConnection();
  });
  return returnTo;
}

/** With a token from elsewhere, or with none where none is needed. */
export async function connect(accessToken?: string): Promise<void> {
  await attempt(async () => {
    state.isLoggedIn = accessToken !== undefined;
    access.set(
      accessToken === undefined
        ? undefined
        : { accessToken, expiresAt: undefined, refreshToken: undefined },
    );
    await openConnection();
  });
}

/** After the last one has ended. */
export const openSession = (): Promise<void> => attempt(openConnection);

export const getDraft = (): Draft | undefined => draft;

export function keepDraft(entered: Draft): void {
  draft = entered;
}

export function setRoots(uris: readonly string[]): void {
  state.roots = uris;
}

export async function switchEra(era: Era): Promise<void> {
  if (era === state.era) return;
  state.era = era;
  if (client === undefined) return;
  state.phase = 'working';
  await closeConnection();
  await attempt(openConnection);
}

/** Ends the session, and forgets the tokens and all that was entered. */
export async function logOut(): Promise<void> {
  await closeConnection();
  const refreshToken = access.getRefreshToken();
  if (tokenServer !== undefined && refreshToken !== undefined) {
    await revokeToken(tokenServer, refreshToken, send).catch(() => {});
  }
  access.set(undefined);
  tokenServer = undefined;
  draft = undefined;
  Object.assign(state, {
    phase: 'disconnected',
    isLoggedIn: false,
    failure: undefined,
    ended: undefined,
    exchanges: [],
    limits: undefined,
    renewalFailure: undefined,
    roots: [],
  } satisfies Partial<State>);
}

/** @throws Error in words for the user. */
export async function call(
  request: McpRequest,
  listener: CallListener,
  signal: AbortSignal,
): Promise<JsonObject> {
  if (client === undefined) throw new Error('The session has ended.');
  try {
    return await client.call(request, listener, signal);
  } catch (error) {
    if (error instanceof CallError) noteEnd(error);
    throw error;
  }
}

/** A request that the playground does not show. @throws Error when nothing answers. */
export async function fetchAsUser(url: string): Promise<Response> {
  const token = (await access.getToken()) ?? '';
  return fetch(url, { cache: 'no-store', headers: { Authorization: `Bearer ${token}` } });
}

function noteEnd({ status, reason }: CallError): void {
  if (status === 401) state.ended = 'login';
  if (reason === 'session_not_found') {
    client = undefined;
    state.ended = 'session';
    state.sessionEndsAt = undefined;
  }
}

function createClient(url: string, noteOf: (headers: Headers) => void): McpClient {
  const { version } = requireFacts();
  return createMcpClient(state.era, {
    url,
    send,
    hasToken: state.isLoggedIn,
    version,
    noteHeaders: noteOf,
  });
}

/** A connection of its own, to one server of the gateway: its session is another than that of the page. */
export const openClientAt = (server: string): McpClient =>
  createClient(`${requireFacts().mcpUrl}/${server}`, () => {});

async function openConnection(): Promise<void> {
  state.phase = 'working';
  client = createClient(requireFacts().mcpUrl, noteHeaders);
  const { capabilities } = await client.connect();
  state.inventory = await readInventory(client, isObject(capabilities) ? capabilities : {});
  state.phase = 'connected';
  state.ended = undefined;
}

async function readInventory(at: McpClient, capabilities: JsonObject): Promise<Inventory> {
  const list = async (capability: string, method: string, member: string) =>
    isObject(capabilities[capability]) ? at.list(method, member) : [];
  return {
    tools: await list('tools', 'tools/list', 'tools'),
    prompts: await list('prompts', 'prompts/list', 'prompts'),
    resources: await list('resources', 'resources/list', 'resources'),
    templates: await list('resources', 'resources/templates/list', 'resourceTemplates'),
  };
}

async function closeConnection(): Promise<void> {
  const closing = client;
  client = undefined;
  state.inventory = EMPTY;
  state.sessionEndsAt = undefined;
  // Where it cannot be ended, it expires.
  await closing?.close().catch(() => {});
}

function noteHeaders(headers: Headers): void {
  const endsAt = Date.parse(headers.get('X-Session-Expires-At') ?? '');
  if (!Number.isNaN(endsAt)) state.sessionEndsAt = endsAt;
  const [remaining, limit] = ['Remaining', 'Limit'].map((name) =>
    headers.get(`X-RateLimit-${name}`),
  );
  if (remaining != null && limit != null) {
    state.limits = { remaining: Number(remaining), limit: Number(limit) };
  }
}

async function attempt(run: () => Promise<void>): Promise<void> {
  state.failure = undefined;
  try {
    await run();
  } catch (error) {
    client = undefined;
    state.failure = error instanceof Error ? error.message : String(error);
    state.phase = 'disconnected';
  }
}

function requireFacts(): Facts {
  if (state.facts === undefined) throw new Error('The gateway did not identify itself.');
  return state.facts;
}

function requireLogInSettings(returnTo: string) {
  const { clientId, operatorsClientId = clientId, redirectUri } = requireLogIn();
  const { mcpUrl } = requireFacts();
  return {
    mcpUrl,
    clientId: returnTo === OPERATORS_PAGE ? operatorsClientId : clientId,
    redirectUri,
  };
}

function requireLogIn(): LogInFacts {
  const { login } = requireFacts();
  if (login === undefined) throw new Error('No login is required here.');
  return login;
}

/** For people: its title, or else its name or URI. */
export const nameOf = (item: JsonObject): string =>
  readText(item, 'name') ?? readText(item, 'uri') ?? readText(item, 'uriTemplate') ?? '';
