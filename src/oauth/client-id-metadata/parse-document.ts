// §4.6, OAuth Client ID Metadata Document (draft) §4, RFC 7591 §2: what a document may say.
import { type JsonObject, parseObject } from '../../platform/json.ts';
import { parseRedirectUris, type RedirectUriRules } from '../redirect-uri/redirect-uri.ts';
import { failDocument } from './client-document-refused.ts';

/** What the service uses of it; wire names, as in a registered client. */
export interface ClientDocument {
  /** The URL of the document. */
  readonly client_id: string;
  readonly client_name?: string;
  readonly client_uri?: string;
  /** Never fetched by the service. */
  readonly logo_uri?: string;
  readonly redirect_uris: readonly string[];
  readonly token_endpoint_auth_method: 'none';
}

const MAX_CLIENT_NAME = 200;
const MAX_URI = 2048;

/** @throws ClientDocumentRefused naming the member. */
export function parseClientDocument(
  clientId: string,
  body: Buffer,
  rules: RedirectUriRules,
): ClientDocument {
  const members = parseObject(body);
  const problem = members === undefined ? 'is not a JSON object' : findProblem(members, clientId);
  if (members === undefined || problem !== undefined) return failMembers(clientId, `${problem}`);
  return {
    client_id: clientId,
    ...(isName(members.client_name) && { client_name: members.client_name }),
    ...(isWebUrl(members.client_uri) && { client_uri: members.client_uri }),
    ...(isWebUrl(members.logo_uri) && { logo_uri: members.logo_uri }),
    redirect_uris: readRedirectUris(clientId, members.redirect_uris, rules),
    token_endpoint_auth_method: 'none',
  };
}

function findProblem(members: JsonObject, clientId: string): string | undefined {
  return PROBLEMS.find(([applies]) => applies(members, clientId))?.[1];
}

const PROBLEMS: readonly (readonly [
  applies: (members: JsonObject, clientId: string) => boolean,
  problem: string,
])[] = [
  [({ client_id }, clientId) => client_id !== clientId, 'has another client_id than its own URL'],
  [(members) => 'client_secret' in members, 'has a client_secret, which everybody could read'],
  [(members) => 'client_secret_expires_at' in members, 'has a client_secret_expires_at'],
  [
    ({ token_endpoint_auth_method: method }) => method !== undefined && method !== 'none',
    'asks for a token_endpoint_auth_method other than none, the only one supported for it here',
  ],
  [
    ({ grant_types }) => isWithout(grant_types, 'authorization_code'),
    'has grant_types without authorization_code',
  ],
  [({ response_types }) => isWithout(response_types, 'code'), 'has response_types without code'],
];

function readRedirectUris(
  clientId: string,
  value: unknown,
  rules: RedirectUriRules,
): readonly string[] {
  const list = parseRedirectUris(value, rules);
  return list.problem === undefined
    ? list.uris
    : failMembers(clientId, `is not usable: ${list.problem}`);
}

/** Absent means the default, which has it. */
const isWithout = (value: unknown, wanted: string): boolean =>
  value !== undefined && !(Array.isArray(value) && value.includes(wanted));

const isName = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.length <= MAX_CLIENT_NAME;

// A page makes links of these: javascript:, data: and white space must not get there.
const isWebUrl = (value: unknown): value is string =>
  typeof value === 'string' &&
  value.length <= MAX_URI &&
  /^https:\/\/[\x21-\x7E]+$/.test(value) &&
  URL.canParse(value);

const failMembers = (clientId: string, problem: string): never =>
  failDocument(`The client's metadata document ${clientId} ${problem}.`);
