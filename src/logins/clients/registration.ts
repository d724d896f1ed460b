// §4.8, RFC 7591: dynamic client registration.

import { fail } from '../../errors/gateway-error.ts';
import {
  createJsonReply,
  type GatewayRequest,
  getHeader,
  type PendingReply,
  type RequestBody,
  readBearerToken,
} from '../../http/endpoint/message.ts';
import type { Clock } from '../../platform/clock.ts';
import { generateClientId, isEqualSecret } from '../../platform/ids.ts';
import { isObject, isStringArray, type JsonObject } from '../../platform/json.ts';
import {
  describeRedirectUriRules,
  parseRedirectUris,
  type RedirectUriRules,
} from '../redirect-uri.ts';
import { JWT_BEARER } from '../request/login-facts.ts';
import type { RegisteredClient, RegisteredClients } from './clients.ts';

/**
 * Clients are public: no secret is issued, whatever method they name (§5.8). `accessToken` is the initial access token of RFC 7591
 * §3.
 */
export const createRegister = (
  clients: RegisteredClients,
  clock: Clock,
  redirectUris: RedirectUriRules,
  accessToken: string | undefined,
) =>
  async function register(request: GatewayRequest, body: RequestBody): Promise<PendingReply> {
    const token = readBearerToken(getHeader(request, 'authorization'));
    const isGiven = token !== undefined && accessToken !== undefined;
    if (accessToken !== undefined && !(isGiven && isEqualSecret(token, accessToken)))
      fail('registration_token_required', { headers: { 'WWW-Authenticate': 'Bearer' } });
    const client = {
      client_id: generateClientId(),
      ...parseClientMetadata(body.value, redirectUris),
      client_id_issued_at: Math.floor(clock.now() / 1000),
      client_secret_expires_at: 0 as const,
    };
    const bytes = Buffer.byteLength(JSON.stringify(client));
    if (bytes > MAX_RECORD_BYTES)
      fail('invalid_client_metadata', {
        details: `Client metadata may be at most ${MAX_RECORD_BYTES} bytes; this is ${bytes} bytes.`,
      });
    return async function add() {
      await clients.add(client);
      return {
        ...createJsonReply(201, client, { 'Cache-Control': 'no-store' }),
        facts: { client: client.client_id },
      };
    };
  };

/** Anybody may register, and the store keeps the record. */
const MAX_RECORD_BYTES = 8192;

// RFC 7591 §2: members of a registration.

/** §2.2 with defaults filled in. */
type ClientMetadata = Omit<
  RegisteredClient,
  'client_id' | 'client_id_issued_at' | 'client_secret_expires_at'
>;

const GRANT_TYPES = ['authorization_code', 'refresh_token'];
const RESPONSE_TYPES = ['code'];
const AUTH_METHODS = ['none', 'client_secret_post', 'client_secret_basic'];
const NAMES = ['client_name', 'software_id', 'software_version'] as const;

/** The record is read at every step of a login, so it must stay small. Characters. */
const MAX_NAME_LENGTH = 1000;
const MAX_ECHOED = 2048;
const MAX_CONTACTS = 10;

/** Further members, echoed if they are well-typed, else ignored. */
const ECHOED: Readonly<Record<string, (value: unknown) => boolean>> = {
  scope: isShort,
  client_uri: isWebUrl,
  logo_uri: isWebUrl,
  contacts: (value) => isStringArray(value) && value.length <= MAX_CONTACTS && value.every(isShort),
  tos_uri: isWebUrl,
  policy_uri: isWebUrl,
  application_type: isShort,
};

/** @throws GatewayError `invalid_client_metadata` or `invalid_redirect_uri` that names the member. */
function parseClientMetadata(body: unknown, rules: RedirectUriRules): ClientMetadata {
  if (!isObject(body)) return failMetadata('The body must be a JSON object.');
  // Many clients write `null` for a missing member.
  const members: JsonObject = Object.fromEntries(
    Object.entries(body).filter(([, value]) => value !== null),
  );
  return {
    ...readNames(members),
    redirect_uris: readRedirectUris(members.redirect_uris, rules),
    grant_types: readChoices('grant_types', selectOwnGrantTypes(members.grant_types), GRANT_TYPES, [
      'authorization_code',
    ]),
    response_types: readChoices('response_types', members.response_types, RESPONSE_TYPES, ['code']),
    token_endpoint_auth_method: readAuthMethod(members.token_endpoint_auth_method),
    ...Object.fromEntries(
      Object.entries(ECHOED)
        .filter(([name, isWellTyped]) => isWellTyped(members[name]))
        .map(([name]) => [name, members[name]]),
    ),
  };
}

function readRedirectUris(value: unknown, rules: RedirectUriRules) {
  const list = parseRedirectUris(value, rules);
  if (list.problem === undefined) return list.uris;
  if (!list.isUri) return failMetadata(`${list.problem}.`);
  return fail('invalid_redirect_uri', {
    details: `${list.problem}. ${describeRedirectUriRules(rules)}`,
  });
}

/**
 * RFC 7591 §3.2.1: a server may leave out what it does not support. That applies to extension grants (RFC 6749 §4.5) other than
 * `authorization_code`, and always to assertions, which need an authenticated client: registered ones are public.
 */
function selectOwnGrantTypes(value: unknown) {
  if (!isStringArray(value)) return value;
  const hasCode = value.includes('authorization_code');
  return value.filter((type) => type !== JWT_BEARER && !(hasCode && /^urn:/i.test(type)));
}

function readChoices(name: string, value: unknown, allowed: string[], fallback: string[]) {
  if (value === undefined) return fallback;
  const isAllowed =
    isStringArray(value) && value.length > 0 && value.every((v) => allowed.includes(v));
  return isAllowed ? value : failMetadata(`${name} must be an array of ${allowed.join(', ')}.`);
}

function readAuthMethod(value: unknown) {
  if (value === undefined) return 'none';
  if (isString(value) && AUTH_METHODS.includes(value)) return value;
  return failMetadata(`token_endpoint_auth_method must be one of ${AUTH_METHODS.join(', ')}.`);
}

function readNames(members: JsonObject) {
  const names: Record<string, string> = {};
  for (const name of NAMES) {
    const value = members[name];
    if (value === undefined) continue;
    if (!isString(value)) return failMetadata(`${name} must be a string.`);
    if (value.length > MAX_NAME_LENGTH)
      return failMetadata(`${name} is longer than ${MAX_NAME_LENGTH} characters.`);
    names[name] = value;
  }
  return names;
}

const isString = (value: unknown): value is string => typeof value === 'string';

function isShort(value: unknown): value is string {
  return isString(value) && value.length <= MAX_ECHOED;
}

// Consoles turn these into links: javascript: and data: must be rejected.
function isWebUrl(value: unknown): value is string {
  return isShort(value) && /^https?:\/\//i.test(value) && URL.canParse(value);
}

const failMetadata = (details: string): never => fail('invalid_client_metadata', { details });
