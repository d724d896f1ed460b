// §24, RFC 8414, OpenID Connect Discovery: finds the authorization server for a server, as its operator or the server itself names
// it.

import { cleanScopes, toOneLine } from '../../http/oauth-client/token-answer.ts';
import { ConnectionProblem, type ConnectionServer } from '../../mcp/upstream/connections.ts';
import { createExpiringMap } from '../../platform/bounded-map.ts';
import type { Clock } from '../../platform/clock.ts';
import { isStringArray, type JsonObject, parseObject } from '../../platform/json.ts';
import { stripUri } from '../../platform/secret-texts.ts';
import { createSingleFlight } from '../../platform/single-flight.ts';
import { quote } from '../../platform/text.ts';
import { createNoAnswerProblem, findUrlProblem, type Outbound } from './outbound.ts';

export interface AuthorizationServer {
  /** The token endpoint if an operator configured endpoints only. */
  readonly issuer: string;
  /** True if `issuer` comes from its metadata, so that RFC 9207 can be checked. */
  readonly isIssuerKnown: boolean;
  readonly authorizationUrl: string;
  readonly tokenUrl: string;
  readonly registrationUrl?: string | undefined;
  readonly revocationUrl?: string | undefined;
  /** RFC 9207 §3. */
  readonly sendsIssuer: boolean;
  /** OAuth Client ID Metadata Document (draft) §5. */
  readonly takesClientDocuments: boolean;
  /** Undefined if the metadata does not list them. */
  readonly authMethods?: readonly string[] | undefined;
  readonly challengeMethods?: readonly string[] | undefined;
  readonly supportedScopes?: readonly string[] | undefined;
}

/** All its endpoints; the one where people log in first. */
export const listEndpoints = (at: AuthorizationServer): readonly string[] =>
  [at.authorizationUrl, at.tokenUrl, at.registrationUrl, at.revocationUrl].filter(
    (url) => url !== undefined,
  );

/** The place to log in for a server, and the requested resource and scopes. */
export interface LoginPlace {
  readonly authorizationServer: AuthorizationServer;
  /** RFC 8707; undefined if none is sent. */
  readonly resource: string | undefined;
  /** Scopes that the server asks for. */
  readonly scopes: readonly string[] | undefined;
}

const FRESH_MS = 300_000;
/** Caches the answer for repeated clicks. */
const FAILURE_MS = 5000;

type Found = { readonly place: LoginPlace } | { readonly problem: ConnectionProblem };

export function createFindLoginPlace(outbound: Outbound, clock: Clock) {
  const kept = createExpiringMap<Found>('authorizationServers', clock.monotonic);
  const searches = createSingleFlight<string, Found>();

  async function search(key: string, server: ConnectionServer): Promise<Found> {
    const found = await findLoginPlace(server, outbound).then(
      (place) => ({ place }),
      (problem: unknown) => {
        if (!(problem instanceof ConnectionProblem)) throw problem;
        return { problem };
      },
    );
    kept.set(key, found, clock.monotonic() + ('place' in found ? FRESH_MS : FAILURE_MS));
    return found;
  }

  /** @throws ConnectionProblem that names server and hop. */
  return async function findKept(server: ConnectionServer): Promise<LoginPlace> {
    const { name, url, auth } = server;
    const key = JSON.stringify([
      name,
      url,
      auth.authorizationServer,
      auth.resource,
      auth.allowPrivate,
    ]);
    const found = kept.get(key) ?? (await searches.run(key, () => search(key, server)));
    if ('problem' in found) throw found.problem;
    return found.place;
  };
}

async function findLoginPlace(server: ConnectionServer, outbound: Outbound): Promise<LoginPlace> {
  const { authorizationServer: configured, resource: wanted } = server.auth;
  const chooseResource = (own: string) => (wanted === false ? undefined : (wanted ?? own));
  if (configured !== undefined && 'tokenUrl' in configured)
    return {
      authorizationServer: describeConfigured(configured, server),
      resource: chooseResource(server.url),
      scopes: undefined,
    };
  const isOperatorsWord = configured !== undefined;
  // An operator configures the issuer because the server names another one, or none.
  const described = await findProtectedResource(server, outbound).catch((problem: unknown) => {
    if (isOperatorsWord) return undefined;
    throw problem;
  });
  // Before such metadata existed, a server was its own authorization server (MCP 2025-03-26).
  const issuers = isOperatorsWord
    ? [configured.issuer]
    : (described?.issuers ?? [new URL(server.url).origin]);
  let first: unknown;
  // Takes the first usable one: a server may name several (RFC 9728 §2).
  for (const issuer of issuers.slice(0, MAX_ISSUERS)) {
    try {
      return {
        authorizationServer: await fetchMetadata(issuer, server, outbound, described !== undefined),
        resource: chooseResource(described?.resource ?? server.url),
        scopes: described?.scopes,
      };
    } catch (problem) {
      first ??= problem;
    }
  }
  throw first;
}

function describeConfigured(
  { authorizationUrl, tokenUrl }: { readonly authorizationUrl: string; readonly tokenUrl: string },
  server: ConnectionServer,
): AuthorizationServer {
  for (const url of [authorizationUrl, tokenUrl]) {
    const problem = findUrlProblem(url, server);
    if (problem !== undefined)
      throw new ConnectionProblem(
        'operator',
        `${server.name}: "authorizationServer" has ${problem}.`,
      );
  }
  return {
    issuer: tokenUrl,
    isIssuerKnown: false,
    authorizationUrl,
    tokenUrl,
    sendsIssuer: false,
    takesClientDocuments: false,
  };
}

const MAX_ISSUERS = 3;

async function fetchMetadata(
  issuer: string,
  server: ConnectionServer,
  outbound: Outbound,
  isNamed: boolean,
): Promise<AuthorizationServer> {
  const hop = `${server.name}: the metadata of its authorization server ${stripUri(issuer)}`;
  // Without metadata, the origin of the server's configured URL is the issuer.
  const isItself = !isNamed && new URL(server.url).origin === issuer;
  const urlProblem = isItself ? undefined : findUrlProblem(issuer, server);
  if (urlProblem !== undefined)
    throw new ConnectionProblem(
      'server',
      `${server.name}: its authorization server is ${urlProblem}.`,
    );
  const heard: string[] = [];
  for (const url of listMetadataUrls(issuer)) {
    const { status, location, body } = await outbound
      .send(url, {}, server)
      .catch(createNoAnswerProblem(`${hop} could not be fetched`));
    const members = status === 200 ? parseObject(body) : undefined;
    if (members !== undefined) return readMetadata(members, issuer, server, hop);
    const { pathname } = new URL(url);
    if (status === 200) heard.push(`${pathname} is no JSON object`);
    else if (location === undefined) heard.push(`${pathname} answered ${status}`);
    else
      heard.push(
        `${pathname} redirects to ${quote(stripUri(location), 200)}, which is not followed`,
      );
  }
  throw new ConnectionProblem(
    isNamed ? 'server' : 'operator',
    `${hop} is at none of the standard places (${heard.join('; ')}). If the server documents its endpoints, set "authorizationServer" to { "authorizationUrl", "tokenUrl" }.`,
  );
}

/** RFC 8414 §3.1, OpenID Connect Discovery §4.1: in MCP's order. */
function listMetadataUrls(issuer: string): readonly string[] {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/+$/, '');
  const inFront = [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}/.well-known/openid-configuration${path}`,
  ];
  return path === '' ? inFront : [...inFront, `${origin}${path}/.well-known/openid-configuration`];
}

function readMetadata(
  members: JsonObject,
  expected: string,
  server: ConnectionServer,
  hop: string,
): AuthorizationServer {
  const { issuer } = members;
  if (typeof issuer !== 'string' || !isSameIssuer(issuer, expected))
    throw new ConnectionProblem(
      'server',
      `${hop} is from a different issuer: ${quote(issuer, 200)} (RFC 8414 §3.3). It is not used: it could belong to somebody else.`,
    );
  const readUrl = (name: string) => {
    const url = members[name];
    if (url === undefined || url === null) return undefined;
    const problem = findUrlProblem(url, server);
    if (problem !== undefined)
      throw new ConnectionProblem('server', `${hop} has a ${name} that is ${problem}.`);
    return String(url);
  };
  const require = (name: string) => {
    const url = readUrl(name);
    if (url === undefined) throw new ConnectionProblem('server', `${hop} has no ${name}.`);
    return url;
  };
  const readList = (name: string) => (isStringArray(members[name]) ? members[name] : undefined);
  return {
    issuer,
    isIssuerKnown: true,
    authorizationUrl: require('authorization_endpoint'),
    tokenUrl: require('token_endpoint'),
    registrationUrl: readUrl('registration_endpoint'),
    revocationUrl: readUrl('revocation_endpoint'),
    sendsIssuer: members.authorization_response_iss_parameter_supported === true,
    takesClientDocuments: members.client_id_metadata_document_supported === true,
    authMethods: readList('token_endpoint_auth_methods_supported'),
    challengeMethods: readList('code_challenge_methods_supported'),
    supportedScopes: readList('scopes_supported'),
  };
}

/** Ignores a trailing slash, which many write in one place only, and which never distinguishes two issuers. */
export const isSameIssuer = (one: string, other: string): boolean =>
  one.replace(/\/$/, '') === other.replace(/\/$/, '');

// §24, RFC 6749 §4.1.2, RFC 9207: reads the response that the browser brings back. Anybody can write such an address: no member is
// trusted before it was compared with the request.

/** The login that waits for the response. */
export interface AwaitedResponse
  extends Pick<AuthorizationServer, 'issuer' | 'isIssuerKnown' | 'sendsIssuer' | 'tokenUrl'> {
  /** Name of the server. */
  readonly server: string;
}

/** The code; undefined if the user declined there. @throws ConnectionProblem */
export function readAuthorizationResponse(
  query: ReadonlyMap<string, string>,
  awaited: AwaitedResponse,
): string | undefined {
  const { server, issuer } = awaited;
  requireIssuer(awaited, query.get('iss'));
  const error = query.get('error');
  if (error === 'access_denied') return undefined;
  if (error !== undefined) throw createRefusal(awaited, error, query.get('error_description'));
  const code = query.get('code');
  if (code !== undefined && code !== '') return code;
  throw new ConnectionProblem(
    'server',
    `${server}: its authorization server ${issuer} sent the browser back without a code. ${BEGIN_AGAIN}`,
  );
}

export const BEGIN_AGAIN = 'Begin again from the list of connections.';

/** RFC 9207 §2.4. A missing `iss` is an error only if the metadata promises it. */
function requireIssuer(
  { server, issuer, isIssuerKnown, sendsIssuer, tokenUrl }: AwaitedResponse,
  iss: string | undefined,
): void {
  if (iss === undefined && !sendsIssuer) return;
  const isSame = isIssuerKnown
    ? iss === issuer
    : iss !== undefined && URL.canParse(iss) && new URL(iss).origin === new URL(tokenUrl).origin;
  if (isSame) return;
  throw new ConnectionProblem(
    'server',
    `${server}: the browser came back from ${iss === undefined ? 'an authorization server that does not say who it is' : quote(iss, 200)}, and the login was begun at ${issuer} (RFC 9207). Nothing was sent to either. ${BEGIN_AGAIN}`,
  );
}

function createRefusal({ server, issuer }: AwaitedResponse, error: string, description = '') {
  const code = /^[\w.-]{1,60}$/.test(error) ? error : 'an error';
  const why = toOneLine(description, 200).replace(/[.\s]+$/, '');
  const said = why === '' ? code : `${code}: ${why}`;
  const advice = ADVICE.get(error);
  return new ConnectionProblem(
    advice === undefined ? 'server' : 'operator',
    `${server}: its authorization server ${issuer} refused the login: ${said}.${advice ?? ''}`,
  );
}

const OF_RESOURCE =
  ' If it does not know the parameter "resource", set "resource": false in the "auth" of this server; if it expects a different value, set that.';

/** Codes of RFC 6749 §4.1.2.1 and RFC 8707 §2 that configuration or client cause, with advice. */
const ADVICE: ReadonlyMap<string, string> = new Map([
  [
    'unauthorized_client',
    ' See whether its client there may use the authorization code grant, and whether "clientId" is right.',
  ],
  ['invalid_scope', ' Set "scopes" to those that the client may request there.'],
  [
    'invalid_request',
    ' See what it documents for this request: "parameters", "resource" and "pkce" of "auth" change it.',
  ],
  ['unsupported_response_type', ' Its client there must be allowed the authorization code grant.'],
  ['invalid_target', OF_RESOURCE],
]);

// §24, RFC 9728: reads a server's metadata: its authorization servers, resource and scopes.

/** Undefined if the server has no such metadata; `issuers` is never empty. @throws ConnectionProblem for unusable metadata. */
async function findProtectedResource(server: ConnectionServer, outbound: Outbound) {
  const challenge = readBearerChallenge(await outbound.readChallenge(server));
  const { origin, pathname } = new URL(server.url);
  const wellKnown = `${origin}/.well-known/oauth-protected-resource`;
  const candidates = [
    ...(challenge.metadata === undefined ? [] : [challenge.metadata]),
    // RFC 9728 §3.1: between host and path; and at the root, where many serve one document for the whole host.
    wellKnown + pathname.replace(/\/+$/, ''),
    wellKnown,
  ];
  for (const url of new Set(candidates)) {
    const found = await fetchResource(url, server, outbound, url === challenge.metadata);
    // Scopes of either count (MCP, "Scope Selection Strategy").
    if (found !== undefined) return { ...found, scopes: challenge.scopes ?? found.scopes };
  }
  return undefined;
}

/** RFC 9728 §5.1, RFC 6750 §3: reads the `WWW-Authenticate` of a refusal. */
export function readBearerChallenge(header: string | undefined) {
  const read = (name: string) => {
    const pattern = new RegExp(
      `(?:^|[\\s,])${name}\\s*=\\s*(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s,"]+))`,
      'i',
    );
    const [, quoted, bare] = pattern.exec(header?.slice(0, MAX_CHALLENGE) ?? '') ?? [];
    return quoted?.replace(/\\(.)/g, '$1') ?? bare;
  };
  const scopes = cleanScopes(read('scope')?.split(' ') ?? []);
  return {
    metadata: read('resource_metadata'),
    scopes: scopes.length === 0 ? undefined : scopes,
  };
}

const MAX_CHALLENGE = 4096;

async function fetchResource(
  url: string,
  server: ConnectionServer,
  outbound: Outbound,
  isNamed: boolean,
) {
  const hop = `${server.name}: its protected resource metadata`;
  const isOwn = URL.canParse(url) && new URL(url).origin === new URL(server.url).origin;
  // At its own origin, a server is reached by the configured address.
  const problem = isOwn ? undefined : findUrlProblem(url, server);
  if (problem !== undefined) throw new ConnectionProblem('server', `${hop} is at ${problem}.`);
  const answer = await outbound
    .send(url, {}, server)
    .catch(createNoAnswerProblem(`${hop} could not be fetched`));
  if (answer.status !== 200) {
    if (!isNamed) return undefined;
    throw new ConnectionProblem(
      'server',
      `${hop}, which its 401 names, answered ${answer.status}.`,
    );
  }
  const members = parseObject(answer.body);
  // Pages that answer every path with 200 are not metadata.
  if (members === undefined && !isNamed) return undefined;
  const { resource, authorization_servers: issuers, scopes_supported: scopes } = members ?? {};
  if (typeof resource !== 'string' || !isSameResource(resource, server.url))
    throw new ConnectionProblem(
      'server',
      `${hop} is about ${quote(resource, 200)}, which is not this server (${server.url}): tokens for it might be another's. Its operator has to mend that, or set "authorizationServer" and "resource".`,
    );
  if (!isStringArray(issuers) || issuers.length === 0)
    throw new ConnectionProblem(
      'server',
      `${hop} names no authorization server. Set "authorizationServer".`,
    );
  return { resource, issuers, scopes: isStringArray(scopes) ? cleanScopes(scopes) : undefined };
}

/**
 * RFC 9728 §3.3. Many servers name their host, or a parent of their path, instead of their exact address: that is accepted within
 * the same origin, which belongs to the same operator.
 */
function isSameResource(resource: string, serverUrl: string) {
  if (!URL.canParse(resource)) return false;
  const [named, own] = [new URL(resource), new URL(serverUrl)];
  const path = named.pathname.replace(/\/+$/, '');
  const isWithin = own.pathname === path || own.pathname.startsWith(`${path}/`);
  return named.origin === own.origin && (isWithin || own.pathname === named.pathname);
}
