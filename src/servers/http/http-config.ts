// Configuration of a server that is reached by URL: its members, and the values that they are parsed into.
import { X509Certificate } from 'node:crypto';
import { freeText, requestHeaders, text, trueOrFalse } from '../../config/file/shapes/scalar.ts';
import { defineMember, type MemberReader } from '../../config/file/shapes/shape.ts';
import { httpUrl } from '../../config/rules.ts';
import type { UpstreamConfig, UpstreamFacts } from '../../mcp/upstream/upstream-config.ts';
import { isSafeForTokens } from '../../platform/address.ts';
import { getMessage } from '../../platform/error-code.ts';
import {
  commonMembers,
  type FileSurroundings,
  readCommon,
  type ServerType,
  type Unnamed,
} from '../config/common-members.ts';
import { authShape, findCredentialType, type UpstreamAuth } from '../credentials/credentials.ts';

export interface HttpUpstreamConfig extends UpstreamConfig {
  readonly kind: 'http';
  readonly url: string;
  /** `sse` is the transport of 2024-11-05. */
  readonly transport: 'streamable-http' | 'sse';
  /** Headers of each request; names in lower case. The values are secrets. */
  readonly headers: Readonly<Record<string, string>>;
  /** PEM of the certificate authorities to trust for this server instead of the system's. */
  readonly ca: string | undefined;
  /** True if cookies that the server sets in a session are sent back in that session. */
  readonly cookies: boolean;
  /** Tells the server who is calling (§18.6). */
  readonly auth: UpstreamAuth;
}

const EXAMPLE = 'https://wiki.example.com/mcp';

const addressShape = text(
  { ...httpUrl, allowed: `${httpUrl.allowed}, for example ${EXAMPLE}` },
  {
    pattern: '^https?://',
    isSecret: true,
  },
);

/** Headers of the message, or of the protocol. */
const OWN_HEADERS = new Set([
  'accept',
  'accept-encoding',
  'content-encoding',
  'content-type',
  'cookie',
  'last-event-id',
  'mcp-method',
  'mcp-name',
  'mcp-protocol-version',
  'mcp-session-id',
]);

export const httpMembers = {
  url: defineMember('url', addressShape, 'The address of the server.'),
  serverUrl: defineMember(
    'serverUrl',
    addressShape,
    'The same as url, under the name that other programs use.',
  ),
  httpUrl: defineMember(
    'httpUrl',
    addressShape,
    'The same as url, under the name that other programs use.',
  ),
  headers: defineMember(
    'headers',
    requestHeaders(OWN_HEADERS),
    'Headers of each request to the server.',
  ),
  auth: defineMember('auth', authShape, 'How the server learns who calls.'),
  ca: defineMember(
    'ca',
    freeText(),
    'A PEM file with the authorities that may have signed its certificate, instead of the system’s. Relative to the configuration file.',
  ),
  cookies: defineMember(
    'cookies',
    trueOrFalse,
    'true: cookies that it sets in a session are sent back in that session, which load balancers with sticky sessions need.',
  ),
};

/** The members that can hold a server's address. */
export const addressMembers = [
  httpMembers.url,
  httpMembers.serverUrl,
  httpMembers.httpUrl,
] as const;

export function buildHttp(
  members: MemberReader,
  type: ServerType | undefined,
): Unnamed<HttpUpstreamConfig> | undefined {
  const { has, read, report } = members;
  const ofAnyTransport = readCommon(members);
  if (type === 'sse' && ofAnyTransport.era === 'stateless')
    report('"sse" has sessions always. Remove "era", or the type.', commonMembers.era);
  const [address = httpMembers.url] = addressMembers.filter(members.has);
  const url = read(address);
  const headers = read(httpMembers.headers) ?? {};
  const auth = read(httpMembers.auth) ?? ({ type: 'none' } as const);
  const ca = read(httpMembers.ca);
  const credentials = findCredentialType(auth);
  if (credentials !== undefined && headers.authorization !== undefined)
    report('auth sends the header Authorization itself. Remove one of them.', httpMembers.headers);
  if (credentials?.passesTokensOn && url !== undefined && !isSafeForTokens(url))
    report(
      'auth sends tokens of users to the server, so the URL must be https, or http on localhost, 127.0.0.1 or [::1].',
      address,
    );
  return url === undefined
    ? undefined
    : {
        kind: 'http',
        url,
        transport: type === 'sse' ? 'sse' : 'streamable-http',
        headers,
        ca,
        cookies: read(httpMembers.cookies) ?? true,
        auth,
        ...ofAnyTransport,
        // A server that learns who is calling has separate lists and sessions for its callers.
        roots: has(commonMembers.roots) ? ofAnyTransport.roots : isOfCaller(auth),
      };
}

const isOfCaller = (auth: UpstreamAuth) => findCredentialType(auth)?.isOfCaller === true;

export function readHttpFacts({ name, url, auth, transport }: HttpUpstreamConfig): UpstreamFacts {
  const { protocol, hostname, port } = new URL(url);
  return {
    personalBy: isOfCaller(auth) ? 'auth' : undefined,
    needsUser: findCredentialType(auth)?.needsUser === true,
    connection: auth.type === 'oauth' ? { name, url, auth } : undefined,
    hasSessionStream: transport === 'streamable-http',
    attributes: {
      'network.transport': 'tcp',
      'network.protocol.name': 'http',
      'server.address': hostname,
      'server.port': Number(port || (protocol === 'https:' ? 443 : 80)),
    },
  };
}

/** Reads the files that the configuration names. Reports their problems, and settings that `auth` needs. */
export function completeHttp(
  server: HttpUpstreamConfig,
  { report }: MemberReader,
  { config, resolvePath, readText }: FileSurroundings,
): HttpUpstreamConfig {
  for (const { checkedAt, isMet, problem } of findCredentialType(server.auth)?.requirements ?? [])
    if (checkedAt === 'file' && !isMet(config, server.auth)) report(problem, httpMembers.auth);
  if (server.ca === undefined) return server;
  try {
    const ca = readText(resolvePath(server.ca));
    if (hasCertificate(ca)) return { ...server, ca };
    report(
      'The file has no certificate in PEM form (-----BEGIN CERTIFICATE-----).',
      httpMembers.ca,
    );
  } catch (error) {
    const reason = getMessage(error);
    report(`The file cannot be read (${reason}).`, httpMembers.ca);
  }
  return server;
}

function hasCertificate(pem: string) {
  try {
    return new X509Certificate(pem).subject !== undefined;
  } catch {
    return false;
  }
}
