// §24: login to an authorization server: from the page there and back (RFC 6749 §4.1, RFC 7636, RFC 9207, RFC 8707).

import { randomBytes } from 'node:crypto';
import type { FormPair } from '../http/oauth-client/client-authentication.ts';
import type { ServerTokens } from '../http/oauth-client/token-answer.ts';
import {
  type Connecting,
  type ConnectionOwner,
  ConnectionProblem,
  type ConnectionRequest,
  type ConnectionServer,
} from '../mcp/upstream/connections.ts';
import { generateSecret, hashSha256, isEqualSecret } from '../platform/ids.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { createSecretRecords } from '../store/records.ts';
import type { AuthorizationServers } from './authorization-servers.ts';
import {
  type ConnectionRecord,
  describeConnection,
  isMadeFor,
  type StoredConnection,
} from './connection-record.ts';
import type { KeptConnections } from './kept-connections.ts';
import type { LinkRequests } from './link-requests.ts';
import { describeTokens } from './renewal.ts';
import {
  type AuthorizationServer,
  type AwaitedResponse,
  BEGIN_AGAIN,
  listEndpoints,
  readAuthorizationResponse,
} from './servers/authorization-server.ts';
import { buildRedirectUri } from './servers/client-document.ts';
import { NoAnswer } from './servers/outbound.ts';
import { TooManyRequests } from './servers/token-endpoint.ts';

/**
 * Found by `state`, which only the browser of this login brings back. It names server and issuer: the response of another one is
 * rejected.
 */
interface Login extends AwaitedResponse {
  readonly owner: ConnectionOwner;
  readonly serverOrigin: string;
  readonly browserHash: string;
  readonly requestId: string | undefined;
  /** The browser must come back to this URI. */
  readonly redirectUri: string;
  readonly revocationUrl: string | undefined;
  readonly client: ConnectionRecord['client'];
  /** Undefined if the authorization server does not support PKCE. */
  readonly verifier: string | undefined;
  readonly resource: string | undefined;
  readonly scopes: readonly string[] | undefined;
}

const LOGIN_SECONDS = 600;
const CONNECTION_ID_BYTES = 16;

export function createConnecting(
  { store, clock, config }: Runtime,
  { seal, records, known, changes, audited, findPlace }: KeptConnections,
  servers: AuthorizationServers,
  requests: LinkRequests,
): Omit<Connecting, 'getClientDocument' | 'listPublicKeys'> {
  const { clients, issuers, requestTokens, findLoginPlace } = servers;
  const { baseUrl } = config.server;
  const logins = createSecretRecords<Login>({ store, seal }, 'connection-login', LOGIN_SECONDS);

  return {
    async findLoginHosts(server) {
      const { authorizationServer } = await findLoginPlace(server);
      return listHosts(authorizationServer);
    },
    async begin(request, server, browser) {
      const { authorizationServer: at, resource, scopes: asked } = await findLoginPlace(server);
      if (!isAsShown(at, server, browser.shownHosts)) return undefined;
      // Before a client is registered, since the registration makes the redirect URI known.
      await issuers.note(server, at);
      const client = await clients.findForLogin(server, at);
      const scopes = await chooseScopes(request, server, asked, at);
      const verifier = server.auth.pkce ? generateSecret() : undefined;
      // RFC 7636 §4.2. An authorization server that lists only other methods cannot verify S256; one that lists none often can
      // (Entra, say), and ignores the parameter otherwise.
      if (verifier !== undefined && at.challengeMethods?.includes('S256') === false)
        throw new ConnectionProblem(
          'operator',
          `${server.name}: its authorization server ${at.issuer} does not offer PKCE with S256 (RFC 7636). With a client secret, "pkce": false does without.`,
        );
      const place = findPlace(request.owner, server.name);
      const redirectUri = buildRedirectUri(baseUrl, server, client.source);
      const state = await logins.put({
        owner: place.owner,
        server: server.name,
        serverOrigin: new URL(server.url).origin,
        browserHash: browser.hash,
        requestId: browser.requestId,
        redirectUri,
        issuer: at.issuer,
        isIssuerKnown: at.isIssuerKnown,
        sendsIssuer: at.sendsIssuer,
        tokenUrl: at.tokenUrl,
        revocationUrl: at.revocationUrl,
        client: {
          id: client.id,
          // A configured secret may change, and is read from the configuration.
          ...(client.source === 'registered' && { secret: client.secret }),
          source: client.source,
          method: client.method,
        },
        verifier,
        resource,
        scopes,
      });
      const { parameters = {} } = server.auth;
      const own = {
        response_type: 'code',
        client_id: client.id,
        redirect_uri: redirectUri,
        state,
        scope: scopes?.join(' '),
        resource,
        code_challenge: verifier && hashSha256(verifier),
        code_challenge_method: verifier && 'S256',
      };
      const url = new URL(at.authorizationUrl);
      // The gateway's own parameters come last, without duplicates.
      for (const [name, value] of [...Object.entries(parameters), ...Object.entries(own)])
        if (value !== undefined) url.searchParams.set(name, value);
      return url.href;
    },
    async finish(query, back, findServer) {
      const login = await logins.take(query.get('state') ?? '');
      if (login === undefined) throw new ConnectionProblem('browser', STATE_UNKNOWN);
      const { server: name, browserHash } = login;
      if (back.browserHash === undefined || !isEqualSecret(back.browserHash, browserHash))
        throw new ConnectionProblem(
          'browser',
          `The login for ${name} began in another browser. ${BEGIN_AGAIN}`,
        );
      if (back.redirectUri !== login.redirectUri)
        throw new ConnectionProblem(
          'server',
          `The login for ${name} came back to an address that is not its own, as if another authorization server had answered (RFC 9700 §4.4). Nothing was sent to either. ${BEGIN_AGAIN}`,
        );
      requireOwner(login, back);
      const server = findServer(name);
      if (server === undefined)
        throw new ConnectionProblem(
          'operator',
          `${name} is not a server of this gateway any more, or needs no login.`,
        );
      if (!isMadeFor(login, server))
        throw new ConnectionProblem(
          'operator',
          `${name} was set up again since its login began. ${BEGIN_AGAIN}`,
        );
      const code = readAuthorizationResponse(query, login);
      if (code === undefined) {
        const { requestId, issuer } = login;
        if (requestId !== undefined) await requests.decline(requestId).catch(() => {});
        throw new ConnectionProblem(
          'person',
          `${name} was not connected: its authorization server ${issuer} says that this was declined there.`,
        );
      }
      const tokens = await redeem(login, server, code);
      const requireLogin = async () => {
        try {
          if (!(await back.isStillLoggedIn())) throw createLoggedOut(name);
        } catch (thrown) {
          // Revokes tokens that no user will see in the list of connections.
          await servers.revokeTokens(server, login, tokens);
          throw thrown;
        }
      };
      await requireLogin();
      return { info: await keep(login, server, tokens, requireLogin), requestId: login.requestId };
    },
  };

  /**
   * Scopes: those that the operator chose, else those that the server asks for; and in addition those granted before and those that
   * this request needs.
   */
  async function chooseScopes(
    { owner, scopes: needed }: ConnectionRequest,
    { name, auth }: ConnectionServer,
    asked: readonly string[] | undefined,
    { supportedScopes }: AuthorizationServer,
  ): Promise<readonly string[] | undefined> {
    const chosen = auth.scopes ?? asked ?? [];
    const stored = needed && (await records.read(findPlace(owner, name)));
    // OpenID Connect Core §11: if the scope is offered, there are no refresh tokens without it.
    const isOffline = auth.scopes === undefined && supportedScopes?.includes('offline_access');
    const scopes = new Set([
      ...chosen,
      ...(stored?.record.scopes ?? []),
      ...(needed ?? []),
      ...(isOffline ? ['offline_access'] : []),
    ]);
    return scopes.size === 0 ? undefined : [...scopes];
  }

  function requireOwner(
    { owner, server }: Login,
    back: { readonly owner: ConnectionOwner | undefined; readonly isOperator: boolean },
  ): void {
    if (owner === 'shared') {
      if (back.isOperator) return;
      throw new ConnectionProblem('person', `Only operators can connect ${server} for everybody.`);
    }
    if (back.owner === undefined) throw createLoggedOut(server);
    if (findPlace(back.owner, server).hash === findPlace(owner, server).hash) return;
    throw new ConnectionProblem(
      'person',
      `The login for ${server} was started by a different user than the one who is logged in now. ${BEGIN_AGAIN}`,
    );
  }

  async function redeem(login: Login, server: ConnectionServer, code: string) {
    const { tokenUrl, verifier } = login;
    const client = clients.findForRecord(server, login);
    const form: readonly FormPair[] = [
      ['grant_type', 'authorization_code'],
      ['code', code],
      ['redirect_uri', login.redirectUri],
      ...(verifier === undefined ? [] : [['code_verifier', verifier] as const]),
    ];
    const hop = `${server.name}’s token endpoint (${new URL(tokenUrl).host})`;
    const answer = await requestTokens(login, client, form, server).catch((cause: unknown) => {
      if (!(cause instanceof NoAnswer || cause instanceof TooManyRequests)) throw cause;
      throw new ConnectionProblem('server', `${hop} did not answer. ${BEGIN_AGAIN}`, { cause });
    });
    if (answer.kind === 'issued') return answer.tokens;
    const isForgotten = answer.kind === 'invalid_client';
    if (isForgotten && login.client.source !== 'registered')
      throw new ConnectionProblem(
        'operator',
        `${hop} ${answer.said}. Check "clientId", "clientSecret" and "clientAuth" of ${server.name}.`,
      );
    const isNew = isForgotten && (await servers.replaceClient(server, login));
    const what = isNew ? ': the registration is gone; the gateway has registered again' : '';
    throw new ConnectionProblem('server', `${hop} ${answer.said}${what}. ${BEGIN_AGAIN}`);
  }

  /** A logout ends the connections that it finds. So a user who was logged out while this one was written must not keep it. */
  async function keep(
    login: Login,
    server: ConnectionServer,
    tokens: ServerTokens,
    requireLogin: () => Promise<void>,
  ) {
    const { serverOrigin, issuer, client, tokenUrl, revocationUrl, resource } = login;
    const place = findPlace(login.owner, login.server);
    const now = clock.now();
    const reading = known.beginReading();
    const made = {
      id: randomBytes(CONNECTION_ID_BYTES).toString('base64url'),
      state: 'active',
      serverOrigin,
      issuer,
      client,
      tokenUrl,
      revocationUrl,
      resource,
      ...describeTokens(tokens, now),
      refreshToken: tokens.refreshToken,
      scopes: tokens.scopes ?? login.scopes,
      account: tokens.account,
      subject: tokens.subject,
      since: now,
    } as const;
    let standing: StoredConnection | undefined;
    let written: StoredConnection | undefined;
    // A connection that was renewed in the meantime is replaced, too.
    do {
      standing = await records.read(place);
      written = standing
        ? await records.replace(place, standing, { ...made, listedUntil: 0 })
        : await records.create(place, made);
    } while (written === undefined);
    const former = standing?.record;
    const { record } = written;
    await requireLogin().catch(async (thrown: unknown) => {
      await records.take(place);
      known.forget(place);
      changes.announce(place, 'missing');
      if (former !== undefined) await servers.revokeConnection(place, server, former);
      throw thrown;
    });
    known.note(place, server, record, reading);
    audited.made(place);
    if (login.requestId !== undefined) await requests.complete(login.requestId);
    changes.announce(place, 'active');
    const problem = former && (await servers.revokeFormer(server, former, record));
    if (problem === undefined) return describeConnection(server, record);
    const told = { ...record, problem };
    // The connection is valid even if this note cannot be written.
    await records.replace(place, written, told).catch(() => undefined);
    return describeConnection(server, told);
  }
}

/** Hosts of the authorization server, without duplicates; the one where people log in comes first. */
const listHosts = (at: AuthorizationServer): readonly string[] => [
  ...new Set(listEndpoints(at).map((url) => new URL(url).host)),
];

/**
 * True if users may be sent there: they get to the hosts that the page showed. If the page showed none, all endpoints must be at
 * the issuer's host, or the operator has named the authorization server.
 */
function isAsShown(at: AuthorizationServer, { auth }: ConnectionServer, shown: string | undefined) {
  const hosts = listHosts(at);
  if (shown !== undefined) return shown === hosts.join(' ');
  const { host: own } = new URL(at.issuer);
  return auth.authorizationServer !== undefined || hosts.every((host) => host === own);
}

const createLoggedOut = (server: string) =>
  new ConnectionProblem(
    'browser',
    `You were logged out of this gateway before the login for ${server} came back. ${BEGIN_AGAIN}`,
  );

const STATE_UNKNOWN = `This login is not known, or was used already: each works once, and within ten minutes. ${BEGIN_AGAIN}`;
