// §4.6, OAuth Client ID Metadata Document (draft) §3, §4: the URL of a client and its document, and why one is refused.

import { type JsonObject, parseObject } from '../../platform/json.ts';
import { parseKeySet, type VerificationKey } from '../auth/jwk.ts';
import { parseRedirectUris, type RedirectUriRules } from '../redirect-uri.ts';

/** Refusal of an https URL as client ID. The message tells the client's developer why. */
export class ClientDocumentRefused extends Error {
  override readonly name = 'ClientDocumentRefused';
  /** True if the host could not be reached, whatever its document says: an operator can fix that. */
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
 * `what` happened, and advice for an operator. `cause` is for the log: it may name internal hosts, which strangers must not learn.
 */
export const createUnreachableError = (host: string, what: string, cause: unknown) =>
  new ClientDocumentRefused(
    `${what} The administrator of this gateway can check that it reaches ${host} on port 443, set HTTPS_PROXY if a proxy is required, or change CIMD_ALLOWED_HOSTS. The gateway's log has the reason.`,
    { cause },
    true,
  );

// §4 of the draft, RFC 7591 §2: members of a document.

/** Members that the gateway uses; wire names, as in a registered client. */
export type ClientDocument = {
  /** The URL of the document. */
  readonly client_id: string;
  readonly client_name?: string;
} & (
  | { readonly token_endpoint_auth_method: 'none'; readonly redirect_uris: readonly string[] }
  /** A client that authenticates, for assertions about its users (ID-JAG). */
  | { readonly token_endpoint_auth_method: typeof KEYED; readonly keys: DocumentKeySource }
);

/** RFC 7591 §2: `jwks` or `jwks_uri`, and not both. */
export type DocumentKeySource =
  | { readonly kind: 'given'; readonly keys: readonly VerificationKey[] }
  | { readonly kind: 'url'; readonly url: URL };

const KEYED = 'private_key_jwt';

const MAX_CLIENT_NAME = 200;
const MAX_URI = 2048;

export interface DocumentRules {
  readonly redirectUris: RedirectUriRules;
  /** Accepts a client's keys. If they cannot be used here, the client should register instead. */
  readonly acceptsKeys: boolean;
  /** `CIMD_ALLOWED_HOSTS`, which also applies to the client's keys. */
  readonly allowedHosts: readonly string[];
}

/** @throws ClientDocumentRefused that names the member. */
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
  const { client_name: name } = members;
  const isName = typeof name === 'string' && name !== '' && name.length <= MAX_CLIENT_NAME;
  const common = { client_id: clientId, ...(isName && { client_name: name }) };
  if (isKeyed) {
    const keys = readKeySource(clientId, members, rules.allowedHosts);
    return { ...common, token_endpoint_auth_method: KEYED, keys };
  }
  const list = parseRedirectUris(members.redirect_uris, rules.redirectUris);
  return {
    ...common,
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

/** Undefined if none is usable. */
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
    'has a token_endpoint_auth_method other than none, the only one supported for it here',
  ],
  [
    ({ grant_types }) => isWithout(grant_types, 'authorization_code'),
    'has grant_types without authorization_code',
  ],
  [({ response_types }) => isWithout(response_types, 'code'), 'has response_types without code'],
];

/** Absent and `null` mean the default, which includes it. */
const isWithout = (value: unknown, wanted: string) =>
  value != null && !(Array.isArray(value) && value.includes(wanted));

const failMembers = (clientId: string, problem: string): never =>
  failDocument(`The client's metadata document ${clientId} ${problem}.`);

// The URL that identifies a client.

const MAX_HOST = 253;

/** In any spelling: an ID that looks like such a URL is validated as one, and never sent elsewhere. */
export const isClientDocumentId = (clientId: string): boolean => /^https:/i.test(clientId);

/** `problem` is a sentence for the client's developer, which does not repeat the input. */
type ClientIdUrl =
  | { readonly url: URL; readonly problem?: undefined }
  | { readonly url?: undefined; readonly problem: string };

/**
 * Parses the URL of a client's metadata document.
 *
 * The draft allows a query ("SHOULD NOT") and a port. Neither is accepted here: each would make any number of client IDs out of one
 * document, or let a caller probe the ports of a host.
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

/** The first that applies is reported; each row may rely on those above it. */
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
  // All readers must read it the same way, byte by byte: it is compared as a string.
  [(id) => new URL(id).href !== id, 'is not in its normal form, with a host in lower case'],
];

const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** At least two labels, the last one not a number; international names in their ASCII form. */
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
