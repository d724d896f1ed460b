// An MCP server behind OAuth on loopback, and its authorization server at another port, as connections (§24) meet them.
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { type Clock, systemClock } from '../../../src/platform/clock.ts';
import { type ListeningServer, listenOnLoopback } from '../upstreams/listen.ts';
import {
  createAuthorizationServer,
  type Routes,
  type TokenBehaviour,
} from './authorization-server.ts';
import { createGate, type Gate } from './gate.ts';
import { KEEPS_TO_MCP, type ServerHabits, type WrittenFor } from './habits.ts';
import { createServerLogins } from './logins.ts';
import type { Era } from './mcp-endpoint.ts';
import { createResourceServer, parseMessage } from './resource-server.ts';

/** A request that came to it, or to its authorization server. */
export interface SeenRequest {
  readonly endpoint: string;
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly query: URLSearchParams;
  /** Of a form. */
  readonly form: URLSearchParams;
  readonly body: string;
  /** Of the endpoint `mcp`. */
  readonly rpcMethod: string | undefined;
  readonly tool: string | undefined;
  /** For whom the token that was presented is good; undefined for none that is. */
  readonly account: string | undefined;
}

export interface ProtectedServer {
  readonly habits: ServerHabits;
  /** Of the MCP endpoint. */
  readonly url: string;
  readonly issuer: string;
  /** The member of `mcpServers` that an operator writes for it, with further members of `auth`. */
  configure(auth?: Readonly<Record<string, unknown>>): object;
  /** Oldest first. */
  readonly requests: readonly SeenRequest[];
  /** Of one endpoint: `mcp`, `resource metadata`, `authorization server metadata`, `authorize`, `token`, `register`, `revoke`. */
  seen(endpoint: string): readonly SeenRequest[];
  /** Calls of tools that it let through: whose they were. */
  calls(): readonly string[];
  /** What must be seen nowhere: each code, token and secret that it gave out. */
  readonly issued: readonly string[];
  /** Headers and bodies of all requests, to be searched. */
  text(): string;
  /** Of the token and the revocation endpoint. */
  behave(behaviour: TokenBehaviour): void;
  behaveAtRegistration(behaviour: TokenBehaviour): void;
  /** A person ended, at the server's own site, what apps may do. */
  endLoginsOf(account: string): void;
  /** Access tokens are refused from now on; refresh tokens are good. */
  spoilAccessTokens(): void;
  /** Is started anew: forgets all sessions, and answers them by this status from now on. */
  loseSessions(status: number): void;
  /** This method, or tool, is answered so from now on, however good the token: as by something behind the server. */
  refuse(name: string, status: number): void;
  /** The MCP server takes no token of this account, however fresh. */
  refuseAccount(account: string): void;
  /** Registrations are forgotten, and what came of them. */
  forgetClients(): void;
  countActiveLogins(): number;
  /** Holds the calls of `slow`. */
  readonly gate: Gate;
  /** Is awaited when a refresh was done and before it is answered; once. */
  onRefresh: (() => Promise<void> | void) | undefined;
  close(): Promise<void>;
}

export interface ProtectedServerOptions {
  readonly habits?: ServerHabits;
  readonly era?: Era;
  readonly clock?: Clock;
}

/** A client that was made at the server's site; any redirect URI is good. */
export const MADE_CLIENT = { id: 'made-at-the-server', secret: 'secret-made-at-the-server' };

export async function startProtectedServer({
  habits = KEEPS_TO_MCP,
  era = 'session',
  clock = systemClock,
}: ProtectedServerOptions = {}): Promise<ProtectedServer> {
  const logins = createServerLogins(habits, clock.now);
  const gate = createGate();
  const requests: SeenRequest[] = [];
  let behaviour: TokenBehaviour = 'ok';
  let registrationBehaviour: TokenBehaviour = 'ok';

  const addMadeClient = () => logins.addClient({ ...MADE_CLIENT, redirectUris: undefined });
  addMadeClient();

  const authorization = createAuthorizationServer({
    habits,
    logins,
    getResource: () => resourceServer.url,
    getOrigin: () => new URL(authorizationServer.url).origin,
    getBehaviour: () => behaviour,
    getRegistrationBehaviour: () => registrationBehaviour,
    async beforeRefreshAnswer() {
      const { onRefresh } = own;
      own.onRefresh = undefined;
      await onRefresh?.();
    },
  });

  const resource = createResourceServer({
    habits,
    logins,
    gate,
    era,
    getUrl: () => resourceServer.url,
    getIssuer: authorization.getIssuer,
  });

  async function receive(routes: Routes, req: IncomingMessage, res: ServerResponse): Promise<void> {
    let body = '';
    for await (const chunk of req) body += chunk;
    const url = new URL(req.url ?? '', 'http://127.0.0.1');
    const route = routes.get(url.pathname);
    const message = route?.endpoint === 'mcp' ? parseMessage(body) : undefined;
    requests.push({
      endpoint: nameEndpoint(route?.endpoint, req.method),
      method: req.method ?? '',
      path: req.url ?? '',
      headers: req.headers,
      query: url.searchParams,
      form: new URLSearchParams(body),
      body,
      rpcMethod: message?.method,
      tool: message?.params?.name,
      account: resource.findLogin(req)?.account,
    });
    if (route === undefined) res.writeHead(404).end();
    else await route.answer(req, res, body, url);
  }

  const listen = (getRoutes: () => Routes): Promise<ListeningServer> =>
    listenOnLoopback((req, res) => {
      receive(getRoutes(), req, res).catch((error: unknown) => {
        if (!res.headersSent) res.writeHead(500);
        res.end(String(error));
      });
    });
  const resourceServer = await listen(() => resource.routes);
  const authorizationServer = await listen(() => authorization.routes);

  const own: ProtectedServer = {
    habits,
    url: resourceServer.url,
    issuer: authorization.getIssuer(),
    configure: (auth = {}) => ({
      url: resourceServer.url,
      auth: { type: 'oauth', ...habits.auth(getWritten()), ...auth },
    }),
    requests,
    seen: (wanted) => requests.filter(({ endpoint }) => endpoint === wanted),
    calls: () =>
      requests
        .filter(({ rpcMethod, account }) => rpcMethod === 'tools/call' && account !== undefined)
        .map(({ account = '' }) => account),
    issued: logins.issued,
    text: () =>
      requests
        .map(({ path, headers, body }) => `${path}\n${JSON.stringify(headers)}\n${body}`)
        .join('\n'),
    behave(wanted) {
      behaviour = wanted;
    },
    behaveAtRegistration(wanted) {
      registrationBehaviour = wanted;
    },
    endLoginsOf: logins.endOf,
    spoilAccessTokens: logins.spoilAccessTokens,
    loseSessions: resource.loseSessions,
    refuse: resource.refuse,
    refuseAccount: logins.refuseAccount,
    forgetClients() {
      logins.clients.clear();
      addMadeClient();
    },
    countActiveLogins: logins.countActive,
    gate,
    onRefresh: undefined,
    async close() {
      await resourceServer.close();
      await authorizationServer.close();
    },
  };

  const getWritten = (): WrittenFor => ({
    issuer: own.issuer,
    clientId: MADE_CLIENT.id,
    clientSecret: MADE_CLIENT.secret,
  });
  return own;
}

/** A look at the token endpoint is no request for a token. */
const nameEndpoint = (endpoint = 'nothing', method = ''): string =>
  endpoint === 'token' && method !== 'POST' ? `token by ${method}` : endpoint;
