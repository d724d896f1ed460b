// §24: who the gateway is at an authorization server: by configuration, by its client document, or by dynamic registration
// (RFC 7591), which one of all replicas does once.
import { isIP } from 'node:net';
import { isOnThisMachine, normalizeHost } from '../../platform/address.ts';
import { createExpiringMap } from '../../platform/bounded-map.ts';
import type { Clock } from '../../platform/clock.ts';
import { hashSha256 } from '../../platform/ids.ts';
import { parseObject } from '../../platform/json.ts';
import { isPublicAddress } from '../../platform/outbound/public-connection.ts';
import { buildConnectionClientKey, RECORD_VERSION } from '../../store/keys.ts';
import type { Seal } from '../../store/seal/seal.ts';
import type { KeyValue } from '../../store/store.ts';
import type { ClientAuthMethod, ConnectionServer } from '../connection.ts';
import { ConnectionProblem } from '../connections.ts';
import type { ClientSource, ConnectionRecord } from '../records/connection-record.ts';
import { createRunExclusively, type LockReleases } from '../records/run-exclusively.ts';
import {
  chooseSecretMethod,
  type OAuthClient,
  readMethodName,
  writeMethodName,
} from '../tokens/client-authentication.ts';
import { cleanText } from '../tokens/token-answer.ts';
import type { AuthorizationServer } from './authorization-server.ts';
import { NoAnswer, type Outbound } from './outbound.ts';

export interface KnownClient extends OAuthClient {
  readonly source: ClientSource;
}

export interface OAuthClients {
  /** For a new login; registers where it must. @throws ConnectionProblem, StoreUnavailable */
  findForLogin(server: ConnectionServer, at: AuthorizationServer): Promise<KnownClient>;
  /** The one that a connection's tokens were made for. */
  findForRecord(server: ConnectionServer, record: ClientOfRecord): OAuthClient;
  /**
   * The authorization server says that it does not know the client. A registration is made anew, at most once in 10
   * minutes: true where that was done now. @throws StoreUnavailable
   */
  replaceForgotten(
    server: ConnectionServer,
    at: AuthorizationServer,
    forgottenId: string,
  ): Promise<boolean>;
  readonly redirectUri: string;
  /** What its URL answers with; undefined where BASE_URL is no public https. */
  readonly document: Readonly<Record<string, unknown>> | undefined;
}

type ClientOfRecord = Pick<ConnectionRecord, 'client'>;

export interface OAuthClientsDeps {
  readonly store: KeyValue;
  readonly locks: LockReleases;
  readonly seal: Seal;
  readonly outbound: Outbound;
  readonly clock: Clock;
  readonly baseUrl: string;
  readonly displayName: string;
}

/** Sealed in the store. */
interface Registration {
  readonly id: string;
  readonly secret?: string | undefined;
  readonly method: ClientAuthMethod;
  /** Epoch milliseconds. */
  readonly registeredAt: number;
  /** RFC 7591 §3.2.1: epoch milliseconds; undefined where the secret does not expire. */
  readonly secretEndsAt?: number | undefined;
}

const TEN_YEARS_SECONDS = 315_360_000;
const RENEWAL_MS = 600_000;
/** A refusal is not asked for again at each click. */
const REFUSED_MS = 10_000;
const MAX_REFUSED = 500;

export function createOAuthClients(deps: OAuthClientsDeps): OAuthClients {
  const { store, seal, outbound, clock, baseUrl, displayName } = deps;
  const redirectUri = `${baseUrl}/connections/callback`;
  const document = createClientDocument(baseUrl, displayName, redirectUri);
  const runExclusively = createRunExclusively<Registration>(deps);
  const refused = createExpiringMap<ConnectionProblem>(MAX_REFUSED, clock.monotonic);

  const hashPlace = (issuer: string): string => hashSha256(JSON.stringify([issuer, redirectUri]));

  async function read(issuer: string): Promise<Registration | undefined> {
    const key = buildConnectionClientKey(hashPlace(issuer));
    const sealed = await store.get(key);
    const text = sealed === undefined ? undefined : seal.open(key, sealed);
    return text === undefined ? undefined : parseRegistration(text);
  }

  async function write(issuer: string, registration: Registration): Promise<void> {
    const key = buildConnectionClientKey(hashPlace(issuer));
    const record = { ...registration, method: writeMethodName(registration.method) };
    const text = JSON.stringify({ ...record, version: RECORD_VERSION });
    await store.set(key, seal.seal(key, text), TEN_YEARS_SECONDS);
  }

  /** However soon its secret ends: at most one in 10 minutes. */
  const isGood = (registration: Registration | undefined): registration is Registration =>
    registration !== undefined &&
    (registration.secretEndsAt === undefined ||
      clock.now() < Math.max(registration.secretEndsAt, registration.registeredAt + RENEWAL_MS));

  /** `forgottenId` is one that the server says it does not know. */
  function register(
    server: ConnectionServer,
    at: AuthorizationServer,
    forgottenId: string | undefined,
  ): Promise<Registration> {
    return runExclusively({
      hash: hashPlace(at.issuer),
      async look() {
        const found = await read(at.issuer);
        return isGood(found) && found.id !== forgottenId ? found : undefined;
      },
      async run() {
        const registration = await requestRegistration(server, at);
        await write(at.issuer, registration);
        return registration;
      },
    });
  }

  async function requestRegistration(
    server: ConnectionServer,
    at: AuthorizationServer,
  ): Promise<Registration> {
    const known = refused.get(at.issuer);
    if (known !== undefined) throw known;
    try {
      return await sendRegistration(server, at);
    } catch (problem) {
      if (problem instanceof ConnectionProblem)
        refused.set(at.issuer, problem, clock.monotonic() + REFUSED_MS);
      throw problem;
    }
  }

  async function sendRegistration(
    server: ConnectionServer,
    at: AuthorizationServer,
  ): Promise<Registration> {
    const { registrationUrl = '' } = at;
    const method = server.auth.clientAuth ?? choosePublicMethod(at.authMethods);
    const body = JSON.stringify({
      ...describeClient(baseUrl, displayName, redirectUri),
      token_endpoint_auth_method: writeMethodName(method),
      ...(method === 'private_key_jwt' && { jwks_uri: `${baseUrl}${KEYS_PATH}` }),
    });
    const hop = `${server.name}: the registration at ${new URL(registrationUrl).host}`;
    const headers = { 'Content-Type': 'application/json' };
    const answer = await outbound
      .send(registrationUrl, { method: 'POST', headers, body }, server)
      .catch((cause: unknown) => {
        if (!(cause instanceof NoAnswer)) throw cause;
        throw new ConnectionProblem('server', `${hop} failed: ${cause.message}.`, { cause });
      });
    const members = parseObject(answer.body);
    if (answer.status !== 200 && answer.status !== 201) {
      const said = typeof members?.error === 'string' ? ` ${cleanText(members.error, 60)}` : '';
      throw new ConnectionProblem(
        'operator',
        `${hop} was refused: it answered ${answer.status}${said}. ${advise(redirectUri)}`,
      );
    }
    const id = members?.client_id;
    if (typeof id !== 'string' || id === '' || id.length > MAX_ID)
      throw new ConnectionProblem(
        'server',
        `${hop} answered ${answer.status} without a client_id.`,
      );
    const { client_secret: secret, client_secret_expires_at: endsAt } = members ?? {};
    const hasSecret = typeof secret === 'string' && secret !== '' && secret.length <= MAX_ID;
    return {
      id,
      ...(hasSecret && { secret }),
      method: chooseRegisteredMethod(members?.token_endpoint_auth_method, method, hasSecret, at),
      registeredAt: clock.now(),
      ...(hasSecret && typeof endsAt === 'number' && endsAt > 0 && { secretEndsAt: endsAt * 1000 }),
    };
  }

  return {
    redirectUri,
    document,
    async findForLogin(server, at) {
      const { clientId, clientSecret, clientAuth } = server.auth;
      if (clientId !== undefined) {
        const method =
          clientSecret === undefined
            ? 'none'
            : chooseSecretMethod(at.authMethods, at.isIssuerKnown);
        const client = { id: clientId, secret: clientSecret, method: clientAuth ?? method };
        return { ...client, source: 'configured' };
      }
      // The document says that the gateway has neither secret nor key.
      const isPublic = clientAuth === undefined || clientAuth === 'none';
      if (at.takesClientDocuments && document !== undefined && isPublic) {
        const id = buildDocumentUrl(baseUrl);
        return { id, secret: undefined, method: 'none', source: 'document' };
      }
      if (at.registrationUrl === undefined) {
        throw new ConnectionProblem(
          'operator',
          `${server.name}: its authorization server ${at.issuer} registers no clients by itself. ${advise(redirectUri)}`,
        );
      }
      return { ...toClient(await register(server, at, undefined)), source: 'registered' };
    },
    findForRecord({ auth }, { client: { id, secret, source, method } }) {
      if (source !== 'configured') return { id, secret, method };
      const { clientId = id, clientSecret, clientAuth = method } = auth;
      return { id: clientId, secret: clientSecret, method: clientAuth };
    },
    async replaceForgotten(server, at, forgottenId) {
      if (at.registrationUrl === undefined) return false;
      const found = await read(at.issuer);
      const isRecent = found !== undefined && clock.now() - found.registeredAt < RENEWAL_MS;
      if (found?.id === forgottenId && isRecent) return false;
      await register(server, at, forgottenId);
      return true;
    },
  };
}

const toClient = ({ id, secret, method }: Registration): OAuthClient => ({ id, secret, method });

const MAX_ID = 4096;
const DOCUMENT_PATH = '/oauth/connections-client.json';
/** Where authorization servers find the keys of a client that was registered with `private_key_jwt`. */
const KEYS_PATH = '/oauth/connections-keys.json';

const advise = (redirectUri: string): string =>
  `Create a client there with the redirect URI ${redirectUri}, and set "clientId" (and "clientSecret" where it gives one).`;

function parseRegistration(text: string): Registration | undefined {
  const { id, secret, method, registeredAt, secretEndsAt } = parseObject(text) ?? {};
  const known = readMethodName(method);
  if (typeof id !== 'string' || known === undefined || typeof registeredAt !== 'number')
    return undefined;
  return {
    id,
    ...(typeof secret === 'string' && { secret }),
    method: known,
    registeredAt,
    ...(typeof secretEndsAt === 'number' && { secretEndsAt }),
  };
}

// RFC 7591 §2: without a secret where that is taken, as PKCE protects the code, and nothing has to be kept.

function choosePublicMethod(listed: readonly string[] | undefined): ClientAuthMethod {
  if (listed === undefined || listed.includes('none')) return 'none';
  if (listed.includes('client_secret_basic')) return 'basic';
  if (listed.includes('client_secret_post')) return 'post';
  return listed.includes('private_key_jwt') ? 'private_key_jwt' : 'none';
}

/** What the answer says counts; some give a secret to whoever asked for none, and want to see it. */
function chooseRegisteredMethod(
  answered: unknown,
  asked: ClientAuthMethod,
  hasSecret: boolean,
  { authMethods }: AuthorizationServer,
): ClientAuthMethod {
  const method = readMethodName(answered) ?? asked;
  if (method === 'private_key_jwt') return method;
  if (!hasSecret) return 'none';
  return method === 'none' && answered === undefined
    ? chooseSecretMethod(authMethods, true)
    : method;
}

const describeClient = (baseUrl: string, displayName: string, redirectUri: string) => ({
  client_name: displayName,
  client_uri: baseUrl,
  redirect_uris: [redirectUri],
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
  application_type: 'web',
});

const buildDocumentUrl = (baseUrl: string): string => `${baseUrl}${DOCUMENT_PATH}`;

/** OAuth Client ID Metadata Document (draft) §4. */
export const createClientDocument = (baseUrl: string, displayName: string, redirectUri: string) =>
  isPublicHttps(baseUrl)
    ? {
        client_id: buildDocumentUrl(baseUrl),
        ...describeClient(baseUrl, displayName, redirectUri),
        token_endpoint_auth_method: 'none',
      }
    : undefined;

/** Whether others on the internet can fetch what lies there, as far as its name says. */
function isPublicHttps(baseUrl: string): boolean {
  const { protocol, hostname } = new URL(baseUrl);
  const host = normalizeHost(hostname);
  if (protocol !== 'https:' || isOnThisMachine(host)) return false;
  if (isIP(host) !== 0) return isPublicAddress(host);
  return host.includes('.') && !INNER_NAMES.test(host);
}

/** RFC 6762, RFC 8375, RFC 9476, and what companies use. */
const INNER_NAMES = /\.(local|internal|lan|corp|home|intranet|alt|home\.arpa)$/;
