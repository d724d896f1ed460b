// §24.3: endpoints of the pages where users connect servers: door 3, and the target of the links of doors 1 and 2.
import { fail } from '../../errors/gateway-error.ts';
import type { Endpoint, OpenEndpoint } from '../../http/endpoint/endpoint.ts';
import {
  createJsonReply,
  createRedirectReply,
  type GatewayRequest,
  type Reply,
  type RequestBody,
} from '../../http/endpoint/message.ts';
import {
  actForUser,
  type BrowserSession,
  createOwnPageEndpoint,
  type OwnPage,
  type OwnPages,
  showToUser,
} from '../../http/endpoint/own-pages.ts';
import {
  createNameCheck,
  failRequest,
  parseBody,
  parseQuery,
  type RequestParameters,
} from '../../http/endpoint/parameters.ts';
import { OAUTH } from '../../http/endpoint/render-error.ts';
import {
  type ConnectionOwner,
  type ConnectionPorts,
  ConnectionProblem,
  type ConnectionRequest,
  type ConnectionServer,
} from '../../mcp/upstream/connections.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { nameOwner, withoutDefault } from '../../store/keys.ts';
import { CALLBACK_PATH } from '../servers/client-document.ts';
import {
  renderConnectedPage,
  renderConnectionsPage,
  renderConnectPage,
  renderDeclinedPage,
  renderExpiredPage,
  renderForeignConnectionPage,
  renderOperatorsOnlyPage,
  renderProblemPage,
  renderUnknownPage,
  type UnfinishedEnd,
} from './connect-page.ts';

/** Fields of the forms. */
const checkFieldName = createNameCheck(['csrf', 'action', 'server', 'request', 'login']);

/** Form of the ID of a link. Anything else never reaches the store. */
const REQUEST_ID = /^[\w-]{1,128}$/;
/** Stands for an ID of any other form; no link has it. */
const UNKNOWN_ID = '-';

const PATH = '/connections';

const buildPage = (server: string, requestId: string | undefined): OwnPage =>
  `${PATH}/${server}${requestId === undefined ? '' : (`?request=${requestId}` as const)}`;

/** `listServers` returns the servers of the current configuration file. */
export function createConnectionEndpoints(
  { config: { server: owner, oauth } }: Pick<Runtime, 'config'>,
  ownPages: OwnPages,
  { connections, requests, connecting }: ConnectionPorts,
  listServers: () => readonly ConnectionServer[],
): readonly Endpoint[] {
  const { baseUrl } = owner;
  const { sessions, browsers } = ownPages;
  /** Default issuer, which is left out of the names of its users. */
  const issuer = oauth.provider?.issuer;

  const findServer = (name: string | undefined) =>
    listServers().find((server) => server.name === name);
  const getPerson = ({ user }: BrowserSession) => withoutDefault(user, issuer);
  const getOwner = (server: ConnectionServer, session: BrowserSession): ConnectionOwner =>
    server.auth.owner === 'shared' ? 'shared' : getPerson(session);
  const isOperatorMissing = (server: ConnectionServer, session: BrowserSession) =>
    server.auth.owner === 'shared' && !session.isOperator;

  // GET /connections

  async function showList(session: BrowserSession, ended?: UnfinishedEnd) {
    const shown = await Promise.all(
      listServers().map(async (server) => ({
        server,
        info: await connections.describe(getOwner(server, session), server),
      })),
    );
    return renderConnectionsPage(owner, session, shown, ended);
  }

  // GET /connections/<server>

  async function getServer({ path, query }: GatewayRequest, cookie: string | undefined) {
    const server = findServer(path.slice(PATH.length + 1));
    if (server === undefined) return renderUnknownPage(owner);
    const parameters = parseQuery(query, () => {});
    const requestId = readRequestId(parameters);
    // The browser comes back from a login that began on the connections page.
    const isReturn = parameters.get('connected') !== undefined;
    const at = { page: buildPage(server.name, requestId), error: parameters.get('error'), cookie };
    return showToUser(owner, ownPages, at, (session) =>
      followLink(server, session, requestId, async ({ owner: whose, scopes }) => {
        const info = await connections.describe(whose, server);
        const isThere =
          info.state === 'active' && (scopes ?? []).every((scope) => info.scopes?.includes(scope));
        // Users who want to connect another account do so on the connections page.
        if (isThere && (isReturn || requestId !== undefined))
          return renderConnectedPage(owner, info);
        return renderConnectPage(owner, {
          server,
          session,
          requestId,
          scopes: scopes ?? server.auth.scopes,
          // Undefined if it cannot be found out: the next step reports the problem.
          hosts: await connecting.findLoginHosts(server).catch((problem: unknown) => {
            if (problem instanceof ConnectionProblem) return undefined;
            throw problem;
          }),
        });
      }),
    );
  }

  /** An empty ID counts, too: a user whose link lost its ID did not come without one. */
  function readRequestId({ get, isNamed }: RequestParameters) {
    const given = get('request');
    if (given !== undefined && REQUEST_ID.test(given)) return given;
    return isNamed('request') ? UNKNOWN_ID : undefined;
  }

  /** Calls `goOn` if this user may connect this server, with the link if there is one. It does not use up the link. */
  async function followLink(
    server: ConnectionServer,
    session: BrowserSession,
    requestId: string | undefined,
    goOn: (request: ConnectionRequest) => Promise<Reply>,
  ): Promise<Reply> {
    const { name } = server;
    if (isOperatorMissing(server, session)) return renderOperatorsOnlyPage(owner, name);
    const asking = getOwner(server, session);
    if (requestId === undefined) return goOn({ owner: asking, server: name, scopes: undefined });
    const request = await requests.find(requestId);
    if (request === undefined || request.server !== name) {
      // A link that was used is gone.
      const info = await connections.describe(asking, server);
      return info.state === 'active' ? renderConnectedPage(owner, info) : renderExpiredPage(owner);
    }
    return isSameOwner(request.owner, asking)
      ? goOn(request)
      : renderForeignConnectionPage(owner, session, { server: name, requestId });
  }

  /** A link for one user works for no other; a link for a shared connection works for no single user. */
  const isSameOwner = (one: ConnectionOwner, other: ConnectionOwner) =>
    one === 'shared' || other === 'shared'
      ? one === other
      : nameOwner(withoutDefault(one, issuer)) === nameOwner(other);

  // POST /connections

  async function post(body: RequestBody, cookie: string | undefined): Promise<Reply> {
    const parameters = parseBody(body, checkFieldName);
    const server = findServer(parameters.require('server'));
    if (server === undefined) return renderUnknownPage(owner);
    const requestId = readRequestId(parameters);
    const form = { page: buildPage(server.name, requestId), parameters, cookie };
    return actForUser(owner, ownPages, form, async (action, session) => {
      if (action === 'disconnect') return disconnect(server, session);
      if (action !== 'connect' && action !== 'decline')
        failRequest('action must be connect, decline, disconnect or switch.');
      return followLink(server, session, requestId, async (request) => {
        const shownHosts = parameters.get('login');
        if (action === 'connect')
          return connect(request, server, { requestId, shownHosts }, cookie);
        if (requestId !== undefined) await requests.decline(requestId);
        return renderDeclinedPage(owner, server.name);
      });
    });
  }

  async function connect(
    request: ConnectionRequest,
    server: ConnectionServer,
    page: { readonly requestId: string | undefined; readonly shownHosts: string | undefined },
    cookie: string | undefined,
  ) {
    const browser = browsers.getOrCreate(cookie);
    const url = await connecting.begin(request, server, { hash: browser.hash, ...page });
    if (url === undefined)
      return createRedirectReply(baseUrl + buildPage(server.name, page.requestId));
    const reply = createRedirectReply(url);
    return { ...reply, headers: { ...reply.headers, ...browser.headers } };
  }

  async function disconnect(server: ConnectionServer, session: BrowserSession) {
    if (isOperatorMissing(server, session)) return renderOperatorsOnlyPage(owner, server.name);
    const by = server.auth.owner === 'shared' ? 'operator' : 'user';
    const { problem } = await connections.end(getOwner(server, session), server, by);
    return problem === undefined
      ? createRedirectReply(baseUrl + PATH)
      : showList(session, { server: server.name, problem });
  }

  // GET /connections/callback/<server>, and /connections/callback for the client document and configured clients

  async function callback(request: GatewayRequest, cookie: string | undefined) {
    const { path, query } = request;
    const parameters = parseQuery(query, () => {});
    // Not a response of an authorization server: there may be a server named "callback".
    if (path === CALLBACK_PATH && parameters.get('state') === undefined)
      return getServer(request, cookie);
    const found = await sessions.find(cookie);
    const { info, requestId } = await connecting.finish(
      new Map(parameters.pairs),
      {
        redirectUri: baseUrl + path,
        browserHash: browsers.readHash(cookie),
        owner: found && getPerson(found.session),
        isOperator: found?.session.isOperator === true,
        isStillLoggedIn: async () => (await sessions.find(cookie)) !== undefined,
      },
      findServer,
    );
    // Removes the response from the address bar.
    return createRedirectReply(
      `${baseUrl}${PATH}${requestId === undefined ? '' : `/${info.server}?connected=1`}`,
    );
  }

  const createEndpoint = createOwnPageEndpoint(sessions, 'connections');
  const serve = (method: 'GET' | 'POST', path: string, run: Parameters<typeof createEndpoint>[2]) =>
    createEndpoint(method, path, (request, cookie, body) =>
      run(request, cookie, body).catch((thrown: unknown) => {
        if (thrown instanceof ConnectionProblem) return renderProblemPage(owner, thrown);
        throw thrown;
      }),
    );

  return [
    serve('GET', PATH, async ({ query }, cookie) => {
      const error = parseQuery(query, () => {}).get('error');
      return showToUser(owner, ownPages, { page: PATH, error, cookie }, showList);
    }),
    serve('POST', PATH, (_request, cookie, body) => post(body, cookie)),
    serve('GET', CALLBACK_PATH, callback),
    serve('GET', `${CALLBACK_PATH}/:server`, callback),
    serve('GET', `${PATH}/:server`, getServer),
    serveDocument(
      '/oauth/connections-client.json',
      () => connecting.getClientDocument() ?? fail('not_found'),
    ),
    serveDocument('/oauth/connections-keys.json', connecting.listPublicKeys),
  ];
}

/** For authorization servers. */
const serveDocument = (
  path: string,
  getDocument: () => JsonObject | Promise<JsonObject>,
): OpenEndpoint => ({
  kind: 'open',
  method: 'GET',
  path,
  errors: OAUTH,
  handle: async () =>
    createJsonReply(200, await getDocument(), { 'Cache-Control': 'public, max-age=300' }),
});
