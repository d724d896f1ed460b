// The one connection of this tab. The front page and the playground share it; a reload forgets it.
import { computed, reactive, readonly } from 'vue';
import { createSend, type Exchange } from './exchange.ts';
import { type Facts, loadFacts } from './facts.ts';
import { isObject, type JsonObject, readText } from './json.ts';
import { beginLogIn, finishLogIn, listEarlierExchanges, type Tokens } from './log-in.ts';
import { createMcpClient, type McpClient, type McpRequest } from './mcp-client.ts';
import { CallError, type CallListener, type Era } from './messages.ts';

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
  exchanges: Exchange[];
  inventory: Inventory;
  limits: Limits | undefined;
  /** Epoch milliseconds. */
  sessionEndsAt: number | undefined;
  tokenEndsAt: number | undefined;
}

const EMPTY: Inventory = { tools: [], prompts: [], resources: [], templates: [] };

const state: State = reactive({
  facts: undefined,
  phase: 'loading',
  isLoggedIn: false,
  era: 'session',
  failure: undefined,
  exchanges: [],
  inventory: EMPTY,
  limits: undefined,
  sessionEndsAt: undefined,
  tokenEndsAt: undefined,
});

/** In memory only, and in nothing that is shown. */
let tokens: Tokens | undefined;
let client: McpClient | undefined;

const MAX_EXCHANGES = 200;

const send = createSend({
  show(exchange) {
    state.exchanges.push(exchange);
    if (state.exchanges.length > MAX_EXCHANGES) state.exchanges.shift();
    return state.exchanges.at(-1) ?? exchange;
  },
  getToken: () => tokens?.accessToken,
});

export const playground = readonly(state);

/** Whether this page was opened at the address that the gateway goes by: the policy allows calls to no other. */
export const isAtHome = computed(
  () => state.facts === undefined || new URL(state.facts.baseUrl).origin === location.origin,
);

export async function start(): Promise<void> {
  if (state.facts !== undefined) return;
  await attempt(async () => {
    state.facts = await loadFacts();
    state.phase = 'disconnected';
  });
}

/** The browser leaves this page. `returnTo` is the path to show then. */
export async function logIn(returnTo: '/' | '/playground' | '/admin'): Promise<void> {
  await attempt(async () => {
    const settings = requireLogInSettings();
    state.exchanges = [];
    state.phase = 'working';
    await beginLogIn(settings, {
      send,
      listExchanges: () => [...state.exchanges],
      returnTo,
      era: state.era,
    });
  });
}

/** Resolves to the path to show, where the login succeeded. */
export async function completeLogIn(query: string): Promise<string | undefined> {
  let returnTo: string | undefined;
  await attempt(async () => {
    state.phase = 'working';
    state.exchanges = listEarlierExchanges().map((exchange) => ({ ...exchange }));
    const finished = await finishLogIn(query, requireLogInSettings(), send);
    tokens = finished.tokens;
    state.tokenEndsAt = tokens.expiresAt;
    state.isLoggedIn = true;
    state.era = finished.era;
    // The operators' page needs no session.
    if (finished.returnTo === '/admin') state.phase = 'disconnected';
    else await openConnection();
    returnTo = finished.returnTo;
  });
  return returnTo;
}

/** With a token from elsewhere, or with none where none is needed. */
export async function connect(accessToken?: string): Promise<void> {
  await attempt(async () => {
    tokens = accessToken === undefined ? undefined : { accessToken, expiresAt: undefined };
    state.isLoggedIn = tokens !== undefined;
    await openConnection();
  });
}

export async function switchEra(era: Era): Promise<void> {
  if (era === state.era) return;
  const wasConnected = client !== undefined;
  await closeConnection();
  state.era = era;
  if (wasConnected) await attempt(openConnection);
}

/** Ends the session and forgets the token. */
export async function logOut(): Promise<void> {
  await closeConnection();
  tokens = undefined;
  state.isLoggedIn = false;
  state.tokenEndsAt = undefined;
  state.limits = undefined;
  state.exchanges = [];
  state.phase = 'disconnected';
}

/** @throws Error in words for the user. */
export async function call(
  request: McpRequest,
  listener: CallListener,
  signal: AbortSignal,
): Promise<JsonObject> {
  if (client === undefined) throw new Error('There is no connection.');
  try {
    return await client.call(request, listener, signal);
  } catch (error) {
    if (error instanceof CallError) noteEnd(error);
    throw error;
  }
}

/** A request of the operators' page, which the playground does not show. @throws Error when nothing answers. */
export const fetchAsUser = (url: string, method: 'GET' | 'DELETE' = 'GET'): Promise<Response> =>
  fetch(url, {
    method,
    cache: 'no-store',
    headers: { Authorization: `Bearer ${tokens?.accessToken ?? ''}` },
  });

/** The session, or the login, is over: there is nothing to call with. */
function noteEnd({ status, reason }: CallError): void {
  if (reason !== 'session_not_found' && status !== 401) return;
  client = undefined;
  state.phase = 'disconnected';
  state.sessionEndsAt = undefined;
  state.failure =
    status === 401 ? 'Your login has expired. Log in again.' : 'The session has ended.';
}

async function openConnection(): Promise<void> {
  state.phase = 'working';
  const { mcpUrl, version } = requireFacts();
  client = createMcpClient(state.era, {
    url: mcpUrl,
    send,
    hasToken: tokens !== undefined,
    version,
    noteHeaders,
  });
  const { capabilities } = await client.connect();
  state.inventory = await readInventory(client, isObject(capabilities) ? capabilities : {});
  state.phase = 'connected';
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
  if (state.facts === undefined) throw new Error('The gateway did not say who it is.');
  return state.facts;
}

function requireLogInSettings() {
  const { mcpUrl, login } = requireFacts();
  if (login === undefined) throw new Error('Nobody has to log in here.');
  return { mcpUrl, clientId: login.clientId, redirectUri: login.redirectUri };
}

/** For people: its title, or else its name or URI. */
export const nameOf = (item: JsonObject): string =>
  readText(item, 'name') ?? readText(item, 'uri') ?? readText(item, 'uriTemplate') ?? '';
