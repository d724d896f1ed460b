// §4.6, OAuth Client ID Metadata Document (draft) §3, §4: the URL of a client and its document, and why one is refused.

import { type JsonObject, parseObject } from '../../platform/json.ts';
import { parseKeySet, type VerificationKey } from '../auth/jwk.ts';
import { parseRedirectUris, type RedirectUriRules } from '../redirect-uri.ts';

/** A client id that is an https URL cannot be used; the message says why, to its developer. */
export class ClientDocumentRefused extends Error {
  override readonly name = 'ClientDocumentRefused';
  /** The host could not be reached, whatever its document says: for an operator to mend. */
  readonly isUnreachable: boolean;

  constructor(message: string, options?: { readonly cause?: unknown }, isUnreachable = false) {
    super(message, options);
    this.isUnreachable = isUnreachable;
  }
}

/** @throws ClientDocumentRefused always. */
export function failDocument(message: string): never {
  throw new ClientDocumentRefused(message);
}

/**
 * `what` happened, and advice for an operator. `cause` is for the log: it may name what is
 * inside the network, which strangers must not be told.
 */
export const createUnreachableError = (host: string, what: string, cause: unknown) =>
  new ClientDocumentRefused(
    `${what} The administrator of this gateway can check that it reaches ${host} on port 443, set HTTPS_PROXY if a proxy is required, or change CIMD_ALLOWED_HOSTS. The gateway's log has the reason.`,
    { cause },
    true,
  );

// §4 of the draft, RFC 7591 §2: what a document may say.

/** The members that the service uses; wire names, as in a registered client. */
export type ClientDocument = PublicClientDocument | KeyedClientDocument;

interface CommonDocument {
  /** The URL of the document. */
  readonly client_id: string;
  readonly client_name?: string;
}

/** Describes a client that people log in by. */
export interface PublicClientDocument extends CommonDocument {
  readonly client_uri?: string;
  /** Never fetched by the service. */
  readonly logo_uri?: string;
  readonly redirect_uris: readonly string[];
  readonly token_endpoint_auth_method: 'none';
}

/** Describes a client that proves who it is, for assertions about its users (ID-JAG). */
export interface KeyedClientDocument extends CommonDocument {
  readonly token_endpoint_auth_method: typeof KEYED;
  readonly keys: DocumentKeySource;
}

/** RFC 7591 §2: `jwks` or `jwks_uri`, and not both. */
export type DocumentKeySource =
  | { readonly kind: 'given'; readonly keys: readonly VerificationKey[] }
  | { readonly kind: 'url'; readonly url: URL };

const KEYED = 'private_key_jwt';

const MAX_CLIENT_NAME = 200;
const MAX_URI = 2048;

export interface DocumentRules {
  readonly redirectUris: RedirectUriRules;
  /** A client may have keys: where there is nothing to be done with them, it had better register. */
  readonly acceptsKeys: boolean;
  /** `CIMD_ALLOWED_HOSTS`, where its keys may be, too. */
  readonly allowedHosts: readonly string[];
}

/** @throws ClientDocumentRefused naming the member. */
export function parseClientDocument(
  clientId: string,
  body: Buffer,
  rules: DocumentRules,
): ClientDocument {
  const members = parseObject(body) ?? failMembers(clientId, 'is not a JSON object');
  const isKeyed = rules.acceptsKeys && members.token_endpoint_auth_method === KEYED;
  const problems = isKeyed ? KEYED_PROBLEMS : DOCUMENT_PROBLEMS;
  const [, problem] = problems.find(([applies]) => applies(members, clientId)) ?? [];
  if (problem !== undefined) failMembers(clientId, problem);
  const { client_name: name, client_uri, logo_uri } = members;
  const isName = typeof name === 'string' && name !== '' && name.length <= MAX_CLIENT_NAME;
  const common = { client_id: clientId, ...(isName && { client_name: name }) };
  if (isKeyed) {
    const keys = readKeySource(clientId, members, rules.allowedHosts);
    return { ...common, token_endpoint_auth_method: KEYED, keys };
  }
  const list = parseRedirectUris(members.redirect_uris, rules.redirectUris);
  return {
    ...common,
    ...(isWebUrl(client_uri) && { client_uri }),
    ...(isWebUrl(logo_uri) && { logo_uri }),
    redirect_uris: list.uris ?? failMembers(clientId, `is not usable: ${list.problem}`),
    token_endpoint_auth_method: 'none',
  };
}

function readKeySource(
  clientId: string,
  { jwks, jwks_uri: uri }: JsonObject,
  allowedHosts: readonly string[],
): DocumentKeySource {
  if (uri == null) {
    const keys = parseDocumentKeys(Buffer.from(JSON.stringify(jwks)));
    return keys === undefined
      ? failMembers(clientId, 'has a jwks without a key that can be used')
      : { kind: 'given', keys };
  }
  const parsed = typeof uri === 'string' ? parseClientIdUrl(uri, allowedHosts) : undefined;
  return parsed?.url
    ? { kind: 'url', url: parsed.url }
    : failMembers(clientId, 'has a jwks_uri that is no https URL at a host of CIMD_ALLOWED_HOSTS');
}

/** Undefined where there is none that can be used. */
export function parseDocumentKeys(body: Buffer): readonly VerificationKey[] | undefined {
  try {
    return parseKeySet(body).usable;
  } catch {
    return undefined;
  }
}

type DocumentProblems = readonly (readonly [
  applies: (members: JsonObject, clientId: string) => boolean,
  problem: string,
])[];

const COMMON_PROBLEMS: DocumentProblems = [
  [({ client_id }, clientId) => client_id !== clientId, 'has another client_id than its own URL'],
  [(members) => 'client_secret' in members, 'has a client_secret, which everybody could read'],
  [(members) => 'client_secret_expires_at' in members, 'has a client_secret_expires_at'],
];

const KEYED_PROBLEMS: DocumentProblems = [
  ...COMMON_PROBLEMS,
  [({ jwks, jwks_uri }) => (jwks == null) === (jwks_uri == null), 'needs one of jwks and jwks_uri'],
  [
    ({ grant_types }) => isWithout(grant_types, 'urn:ietf:params:oauth:grant-type:jwt-bearer'),
    'has grant_types without urn:ietf:params:oauth:grant-type:jwt-bearer',
  ],
];

const DOCUMENT_PROBLEMS: DocumentProblems = [
  ...COMMON_PROBLEMS,
  [
    ({ token_endpoint_auth_method: method }) => method != null && method !== 'none',
    'asks for a token_endpoint_auth_method other than none, the only one supported for it here',
  ],
  [
    ({ grant_types }) => isWithout(grant_types, 'authorization_code'),
    'has grant_types without authorization_code',
  ],
  [({ response_types }) => isWithout(response_types, 'code'), 'has response_types without code'],
];

/** Absent means the default, which has it, and so does `null`. */
const isWithout = (value: unknown, wanted: string) =>
  value != null && !(Array.isArray(value) && value.includes(wanted));

// A page makes links of these: javascript:, data: and white space must not get there.
const isWebUrl = (value: unknown): value is string =>
  typeof value === 'string' &&
  value.length <= MAX_URI &&
  /^https:\/\/[\x21-\x7E]+$/.test(value) &&
  URL.canParse(value);

const failMembers = (clientId: string, problem: string): never =>
  failDocument(`The client's metadata document ${clientId} ${problem}.`);

// The URL by which a client is known.

const MAX_HOST = 253;

/** In any spelling: what claims to be such a URL is judged as one and reaches nobody else. */
export const isClientDocumentId = (clientId: string): boolean => /^https:/i.test(clientId);

/** `problem` is for the client's developer: a sentence that repeats nothing of what it refuses. */
type ClientIdUrl =
  | { readonly url: URL; readonly problem?: undefined }
  | { readonly url?: undefined; readonly problem: string };

/**
 * The URL of a client's metadata document.
 *
 * The draft allows a query ("SHOULD NOT") and a port; neither is taken here: each would make any
 * number of client ids out of one document, or let a caller probe the ports of a host.
 *
 * @param allowedHosts - `*` for any public host, else exact names in lower case.
 */
export function parseClientIdUrl(clientId: string, allowedHosts: readonly string[]): ClientIdUrl {
  const [, wrong] = URL_PROBLEMS.find(([applies]) => applies(clientId)) ?? [];
  if (wrong !== undefined) return { problem: `The client_id ${wrong}.` };
  const url = new URL(clientId);
  const { hostname } = url;
  if (!isHostName(hostname))
    return {
      problem:
        'The client_id must name its host by a full DNS name, not by an address or localhost.',
    };
  if (!allowedHosts.includes('*') && !allowedHosts.includes(hostname))
    return {
      problem: `The host ${hostname} of the client_id is not allowed here. An operator can add it to CIMD_ALLOWED_HOSTS.`,
    };
  return { url };
}

/** The first that applies is told; each row may rely on those above it. */
const URL_PROBLEMS: readonly (readonly [applies: (id: string) => boolean, problem: string])[] = [
  [(id) => id.length > MAX_URI, `is longer than ${MAX_URI} characters`],
  [
    (id) => /[^\x21-\x7E]|\\/.test(id),
    'contains white space, a control character, a backslash or a character beyond ASCII',
  ],
  [(id) => !id.startsWith('https://'), 'does not begin with https://'],
  [(id) => id.includes('#'), 'has a fragment'],
  [(id) => id.includes('?'), 'has a query'],
  [(id) => getAuthority(id).includes('@'), 'has user info'],
  [(id) => /:\d*$/.test(getAuthority(id)), 'has a port; only the default port is allowed'],
  [(id) => getAuthority(id).endsWith('.'), 'has a host that ends with a dot'],
  [(id) => !URL.canParse(id), 'is not a valid URL'],
  [(id) => getPath(id) === '' || getPath(id) === '/', 'has no path'],
  [(id) => getPath(id).split('/').some(isDotSegment), 'has a path with a segment . or ..'],
  // It has to mean the same to every reader, byte by byte: it is compared as a string.
  [(id) => new URL(id).href !== id, 'is not in its normal form, with a host in lower case'],
];

const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** At least two labels, the last one no number; international names in their ASCII form. */
function isHostName(host: string) {
  const labels = host.split('.');
  const last = labels.at(-1) ?? '';
  return (
    host.length <= MAX_HOST &&
    labels.length > 1 &&
    labels.every((label) => LABEL.test(label)) &&
    /^[a-z]/.test(last) &&
    last !== 'localhost'
  );
}

/** WHATWG URL: %2e counts as a dot. */
const isDotSegment = (segment: string) => /^(\.|%2e){1,2}$/i.test(segment);

const getAuthority = (id: string) => /^https:\/\/([^/?#]*)/.exec(id)?.[1] ?? '';

const getPath = (id: string) => id.slice('https://'.length + getAuthority(id).length);
