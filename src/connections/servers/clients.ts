// §24.2: finds the gateway's client for an authorization server: by configuration, by its client document, or by registration.

import {
  type ClientAuthMethod,
  chooseSecretMethod,
  type OAuthClient,
  readMethodName,
  writeMethodName,
} from '../../http/oauth-client/client-authentication.ts';
import { toOneLine } from '../../http/oauth-client/token-answer.ts';
import {
  type ConnectionAuth,
  ConnectionProblem,
  type ConnectionServer,
} from '../../mcp/upstream/connections.ts';
import { createExpiringMap } from '../../platform/bounded-map.ts';
import { hashSha256 } from '../../platform/ids.ts';
import { isStringArray, parseObject } from '../../platform/json.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { buildConnectionClientKey } from '../../store/keys.ts';
import { createRecords, type RecordFormat, writeVersioned } from '../../store/records.ts';
import type { ClientSource, ConnectionRecord } from '../connection-record.ts';
import type { KeptConnections } from '../kept-connections.ts';
import { createRunExclusively } from '../run-exclusively.ts';
import type { AuthorizationServer } from './authorization-server.ts';
import {
  adviseToCreate,
  buildOwnRedirectUri,
  buildRedirectUri,
  createClientDocument,
  describeClient,
  findDocumentUrl,
  isRedirectAmbiguous,
} from './client-document.ts';
import type { KnownIssuers } from './known-issuers.ts';
import { createNoAnswerProblem, type Outbound } from './outbound.ts';

export interface ChosenClient extends Omit<OAuthClient, 'audience'> {
  readonly source: ClientSource;
}

export type OAuthClients = ReturnType<typeof createOAuthClients>;

export function createOAuthClients(
  runtime: Runtime,
  kept: KeptConnections,
  outbound: Outbound,
  issuers: KnownIssuers,
) {
  const { baseUrl, displayName } = runtime.config.server;
  const documentUrl = findDocumentUrl(baseUrl);
  const { register, replaceForgotten } = createRegistrations(runtime, kept, outbound, issuers);

  return {
    replaceForgotten,
    /** Body of the document's URL; undefined if BASE_URL is not a public https URL. */
    createDocument: () => createClientDocument(baseUrl, displayName),
    /** For a new login; registers a client if needed. @throws ConnectionProblem, StoreUnavailable */
    async findForLogin(server: ConnectionServer, at: AuthorizationServer): Promise<ChosenClient> {
      const { clientId, clientSecret, clientAuth } = server.auth;
      if (isRedirectAmbiguous(server, at))
        throw new ConnectionProblem(
          'operator',
          `${server.name}: with "redirectUri": "common", its authorization server ${at.issuer} must say in its responses who it is (RFC 9207), and does not promise to. Add the redirect URI ${buildOwnRedirectUri(baseUrl, server)} to the client there, and remove "redirectUri".`,
        );
      const source = chooseClientSource(server.auth, at, documentUrl !== undefined);
      switch (source) {
        case 'configured': {
          const method =
            clientSecret === undefined
              ? 'none'
              : chooseSecretMethod(at.authMethods, at.isIssuerKnown);
          return { id: clientId ?? '', secret: clientSecret, method: clientAuth ?? method, source };
        }
        case 'document':
          return { id: documentUrl ?? '', secret: undefined, method: 'none', source };
        case 'registered': {
          const { id, secret, method } = await register(server, at);
          return { id, secret, method, source };
        }
        case undefined:
          throw new ConnectionProblem(
            'operator',
            `${server.name}: its authorization server ${at.issuer} registers no clients by itself. ${adviseToCreate(baseUrl, server)}`,
          );
      }
    },
    /** The client that a connection's tokens were made for. */
    findForRecord(
      { auth }: ConnectionServer,
      { issuer, client }: Pick<ConnectionRecord, 'client' | 'issuer'>,
    ): OAuthClient {
      const { id, secret, source, method } = client;
      const audience = auth.assertionAudience === 'endpoint' ? undefined : issuer;
      if (source !== 'configured') return { id, secret, method, audience };
      const { clientId = id, clientSecret, clientAuth = method } = auth;
      return { id: clientId, secret: clientSecret, method: clientAuth, audience };
    },
  };
}

/** Undefined if an operator has to create a client there. */
export function chooseClientSource(
  { clientId, clientAuth }: ConnectionAuth,
  { takesClientDocuments, sendsIssuer, registrationUrl }: AuthorizationServer,
  hasDocument: boolean,
): ClientSource | undefined {
  if (clientId !== undefined) return 'configured';
  // The document states that the gateway has neither secret nor key. It is also the same for all authorization servers, so the
  // servers that identify the gateway by this document can only be told apart by `iss`.
  const isPublic = clientAuth === undefined || clientAuth === 'none';
  if (takesClientDocuments && sendsIssuer && hasDocument && isPublic) return 'document';
  return registrationUrl === undefined ? undefined : 'registered';
}

// §24.2, RFC 7591: clients that the gateway registered: one per authorization server, shared by all replicas.

/** Sealed in the store. */
interface ClientRegistration {
  readonly id: string;
  /** One registration is used for all servers of its authorization server. */
  readonly redirectUris: readonly string[];
  readonly secret?: string | undefined;
  readonly method: ClientAuthMethod;
  /** Epoch milliseconds. */
  readonly registeredAt: number;
  /** RFC 7591 §3.2.1: epoch milliseconds; undefined if the secret does not expire. */
  readonly secretEndsAt?: number | undefined;
}

const TEN_YEARS_SECONDS = 315_360_000;
const RENEWAL_MS = 600_000;
/** A refusal is cached, so that clicks do not repeat the request. */
const REFUSED_MS = 10_000;

function createRegistrations(
  runtime: Runtime,
  { seal, changes, listServers }: KeptConnections,
  outbound: Outbound,
  issuers: KnownIssuers,
) {
  const { store, clock } = runtime;
  const { baseUrl, displayName } = runtime.config.server;
  const runExclusively = createRunExclusively<ClientRegistration>(runtime, changes);
  const refused = createExpiringMap<ConnectionProblem>('refusedRegistrations', clock.monotonic);

  const hashPlace = (issuer: string) => hashSha256(JSON.stringify([issuer, baseUrl]));

  const buildKey = (issuer: string) => buildConnectionClientKey(hashPlace(issuer));
  const registrations = createRecords(store, registrationFormat, seal);

  /** Rate limit for secrets that expire soon: at most one registration in 10 minutes. */
  const isGood = ({ secretEndsAt, registeredAt }: ClientRegistration) =>
    secretEndsAt === undefined || clock.now() < Math.max(secretEndsAt, registeredAt + RENEWAL_MS);

  /** `forgottenId` is a client that the server no longer knows. A registration without the server’s redirect URI is replaced. */
  async function find(
    server: ConnectionServer,
    at: AuthorizationServer,
    forgottenId: string | undefined,
  ): Promise<ClientRegistration> {
    const redirectUri = buildRedirectUri(baseUrl, server);
    let isTried = false;
    for (;;) {
      const registration = await runExclusively({
        hash: hashPlace(at.issuer),
        async look() {
          const found = await registrations.get(buildKey(at.issuer));
          return found?.redirectUris.includes(redirectUri) &&
            found.id !== forgottenId &&
            isGood(found)
            ? found
            : undefined;
        },
        async run() {
          isTried = true;
          // Keeps the redirect URIs of other servers that still exist.
          const current = new Set(listServers().map((one) => buildRedirectUri(baseUrl, one)));
          const before = (await registrations.get(buildKey(at.issuer)))?.redirectUris ?? [];
          const uris = new Set([...before.filter((uri) => current.has(uri)), redirectUri]);
          // A problem of one server does not apply to another.
          const key = `${at.issuer} ${server.name}`;
          const known = refused.get(key);
          if (known !== undefined) throw known;
          const made = await requestRegistration(server, at, [...uris]).catch(
            (problem: unknown) => {
              if (problem instanceof ConnectionProblem)
                refused.set(key, problem, clock.monotonic() + REFUSED_MS);
              throw problem;
            },
          );
          await registrations.put(buildKey(at.issuer), made, TEN_YEARS_SECONDS);
          return made;
        },
      }).catch((problem: unknown) => {
        if (isTried || !(problem instanceof ConnectionProblem)) throw problem;
        return undefined;
      });
      // If two servers come at the same moment, the second may get the registration or the refusal of the first.
      if (registration?.redirectUris.includes(redirectUri)) return registration;
    }
  }

  async function requestRegistration(
    server: ConnectionServer,
    at: AuthorizationServer,
    redirectUris: readonly string[],
  ): Promise<ClientRegistration> {
    const { registrationUrl = '' } = at;
    const method = server.auth.clientAuth ?? choosePublicMethod(at.authMethods);
    const body = JSON.stringify({
      ...describeClient(baseUrl, displayName, redirectUris),
      token_endpoint_auth_method: writeMethodName(method),
      ...(method === 'private_key_jwt' && { jwks_uri: `${baseUrl}${KEYS_PATH}` }),
    });
    const hop = `${server.name}: the registration at ${new URL(registrationUrl).host}`;
    const headers = { 'Content-Type': 'application/json' };
    const answer = await outbound
      .send(registrationUrl, { method: 'POST', headers, body }, server)
      .catch(createNoAnswerProblem(`${hop} failed`));
    const members = parseObject(answer.body);
    if (answer.status !== 200 && answer.status !== 201) {
      const said = typeof members?.error === 'string' ? ` ${toOneLine(members.error, 60)}` : '';
      throw new ConnectionProblem(
        'operator',
        `${hop} was refused: it answered ${answer.status}${said}. ${adviseToCreate(baseUrl, server)}`,
      );
    }
    const id = members?.client_id;
    if (typeof id !== 'string' || id === '' || id.length > MAX_ID)
      throw new ConnectionProblem(
        'server',
        `${hop} answered ${answer.status} without a client_id.`,
      );
    await requireNewId(server, at, id);
    const { client_secret: secret, client_secret_expires_at: endsAt } = members ?? {};
    const hasSecret = typeof secret === 'string' && secret !== '' && secret.length <= MAX_ID;
    return {
      id,
      redirectUris,
      ...(hasSecret && { secret }),
      method: chooseRegisteredMethod(members?.token_endpoint_auth_method, method, hasSecret, at),
      registeredAt: clock.now(),
      ...(hasSecret && typeof endsAt === 'number' && endsAt > 0 && { secretEndsAt: endsAt * 1000 }),
    };
  }

  /** A client of another authorization server would have users log in there. @throws ConnectionProblem */
  async function requireNewId(
    server: ConnectionServer,
    { issuer }: AuthorizationServer,
    id: string,
  ): Promise<void> {
    const refuse = (where: string) => {
      const what = `the registration at ${issuer} answered with the client that this gateway has ${where}`;
      throw new ConnectionProblem('server', `${server.name}: ${what}. It is not used.`);
    };
    if (id === findDocumentUrl(baseUrl)) refuse('by its client document');
    for (const other of await issuers.listOthers(server, issuer)) {
      if (other.clientId === id || (await registrations.get(buildKey(other.issuer)))?.id === id)
        refuse(`at ${other.issuer}`);
    }
  }

  return {
    /** The stored registration, or a new one. @throws ConnectionProblem, StoreUnavailable */
    register: (server: ConnectionServer, at: AuthorizationServer) => find(server, at, undefined),
    /**
     * Handles an authorization server that no longer knows the client: registers again, at most once every 10 minutes; true if that
     * was done now. @throws StoreUnavailable
     */
    async replaceForgotten(server: ConnectionServer, at: AuthorizationServer, forgottenId: string) {
      if (at.registrationUrl === undefined) return false;
      const found = await registrations.get(buildKey(at.issuer));
      const isRecent = found !== undefined && clock.now() - found.registeredAt < RENEWAL_MS;
      if (found?.id === forgottenId && isRecent) return false;
      await find(server, at, forgottenId);
      return true;
    },
  };
}

const MAX_ID = 4096;
/** Path where authorization servers find the keys of a client registered with `private_key_jwt`. */
const KEYS_PATH = '/oauth/connections-keys.json';

const registrationFormat: RecordFormat<ClientRegistration> = {
  write: (registration) =>
    writeVersioned({ ...registration, method: writeMethodName(registration.method) }),
  read(text) {
    const { id, redirectUris, secret, method, registeredAt, secretEndsAt } =
      parseObject(text) ?? {};
    const known = readMethodName(method);
    if (typeof id !== 'string' || known === undefined || typeof registeredAt !== 'number')
      return undefined;
    return {
      id,
      redirectUris: isStringArray(redirectUris) ? redirectUris : [],
      ...(typeof secret === 'string' && { secret }),
      method: known,
      registeredAt,
      ...(typeof secretEndsAt === 'number' && { secretEndsAt }),
    };
  },
};

// RFC 7591 §2: without a secret if possible, since PKCE protects the code, and there is nothing to store.

function choosePublicMethod(listed: readonly string[] | undefined): ClientAuthMethod {
  if (listed === undefined || listed.includes('none')) return 'none';
  if (listed.includes('client_secret_basic')) return 'basic';
  if (listed.includes('client_secret_post')) return 'post';
  return listed.includes('private_key_jwt') ? 'private_key_jwt' : 'none';
}

/** The response counts: some issue a secret to a client that asked for none, and require it. */
function chooseRegisteredMethod(
  answered: unknown,
  asked: ClientAuthMethod,
  hasSecret: boolean,
  { authMethods }: AuthorizationServer,
) {
  const method = readMethodName(answered) ?? asked;
  if (method === 'private_key_jwt') return method;
  if (!hasSecret) return 'none';
  return method === 'none' && answered === undefined
    ? chooseSecretMethod(authMethods, true)
    : method;
}
