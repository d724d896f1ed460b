// §4.6–§4.8: parses parameters of queries and forms: their sources, repetitions and names.
import { fail } from '../../errors/gateway-error.ts';
import { isObject } from '../../platform/json.ts';
import type { RequestBody } from './message.ts';

/** @throws GatewayError `oauth_invalid_request` */
type CheckName = (name: string) => void;

/** RFC 8707 §2: the only repeatable parameter. */
const REPEATABLE = 'resource';

export interface RequestParameters {
  /** The value, or undefined if it is missing or empty. */
  get(name: string): string | undefined;
  /** @throws GatewayError `oauth_invalid_request` naming the parameter. */
  require(name: string): string;
  /** True if the parameter was sent, even without a value. */
  isNamed(name: string): boolean;
  /** All parameters with a value, in the order received. */
  readonly pairs: readonly (readonly [name: string, value: string])[];
}

/** @throws GatewayError `oauth_invalid_request` for a repeated or refused parameter. */
export function parseQuery(
  query: string,
  checkName: CheckName = checkRequestName,
): RequestParameters {
  if (hasTooManyParameters(query)) failTooMany();
  return createParameters([...new URLSearchParams(query)], checkName);
}

/**
 * Parses a form, or a JSON object with string members.
 *
 * @throws GatewayError `oauth_invalid_request` for a repeated, non-string or refused member.
 */
export function parseBody(
  body: RequestBody,
  checkName: CheckName = checkRequestName,
): RequestParameters {
  if (body.type === 'form') return parseQuery(body.text, checkName);
  if (!isObject(body.value)) return failRequest('The body must be a JSON object.');
  const members = Object.entries(body.value);
  if (members.length > MAX_PARAMETERS) failTooMany();
  const pairs = members.map(([name, member]) => {
    if (typeof member === 'string') return [name, member] as const;
    return failRequest(`The member ${shortenName(name)} must be a string.`);
  });
  // A flat object of strings has two strings per member, unless a name is repeated.
  const strings = body.text.match(JSON_STRING) ?? [];
  if (strings.length !== 2 * members.length) failRequest('A member of the body appears twice.');
  return createParameters(pairs, checkName);
}

const JSON_STRING = /"(?:[^"\\]|\\.)*"/g;

/** Far more than any client sends: processing many takes time, and any client may send them. */
const MAX_PARAMETERS = 100;

/** Checks a query or a form without parsing it. */
export const hasTooManyParameters = (text: string): boolean =>
  text.split('&', MAX_PARAMETERS + 1).length > MAX_PARAMETERS;

const failTooMany = (): never =>
  failRequest(`The request has more than ${MAX_PARAMETERS} parameters.`);

function createParameters(
  received: readonly (readonly [string, string])[],
  checkName: CheckName,
): RequestParameters {
  // RFC 6749 §3.1: a parameter without a value counts as omitted, whatever its name.
  const pairs = received.filter(([, value]) => value !== '');
  const values = new Map<string, string>();
  for (const [name, value] of pairs) {
    checkName(name);
    if (values.has(name) && name !== REPEATABLE)
      failRequest(`The parameter ${shortenName(name)} appears twice.`);
    values.set(name, value);
  }
  return {
    get: (name) => values.get(name),
    isNamed: (name) => received.some(([one]) => one === name),
    require: (name) => values.get(name) ?? failRequest(`${name} is missing.`),
    pairs,
  };
}

/** Limits how much caller-supplied text is echoed. */
const shortenName = (name: string) => (name.length > 40 ? `${name.slice(0, 40)}...` : name);

/** RFC 6749, 7009, 7521, 7636, 8628, 8693, 8707, 9396, 9449, OpenID Connect Core §3.1.2.1. */
const REQUEST_PARAMETERS = `
  acr_values actor_token actor_token_type assertion audience authorization_details claims
  claims_locales client_assertion client_assertion_type client_id client_secret code
  code_challenge code_challenge_method code_verifier device_code display domain_hint dpop_jkt
  grant_type id_token_hint login_hint max_age nonce password prompt redirect_uri refresh_token
  requested_token_type resource response_mode response_type scope state subject_token
  subject_token_type token token_type_hint ui_locales username
`
  .trim()
  .split(/\s+/);

/** Each could bypass the check with a different redirect_uri (RFC 9101, OpenID Connect Core §6). */
const UNSUPPORTED = ['request', 'request_uri', 'registration'] as const;

const RESERVED = new Set([...REQUEST_PARAMETERS, ...UNSUPPORTED]);

/**
 * `furtherNames`: additional names that the endpoint accepts.
 *
 * PHP reads `redirect.uri` as `redirect_uri`, and `redirect_uri[]` as a list; other frameworks ignore the case of names: the
 * provider would see a parameter that was never checked here.
 */
export function createNameCheck(furtherNames: readonly string[] = []): CheckName {
  const known = new Set<string>([...REQUEST_PARAMETERS, ...furtherNames]);
  return function checkName(name) {
    if (known.has(name)) return;
    if (!/^[A-Za-z0-9_:.-]+$/.test(name))
      failRequest('Parameter names may contain only letters, digits and _ : . -');
    const normalized = name.toLowerCase().replace(/[^a-z0-9]/g, '_');
    if (normalized === name && RESERVED.has(name))
      failRequest(`The parameter ${name} is not supported.`);
    if (RESERVED.has(normalized))
      failRequest(`A parameter has a name that could be mistaken for ${normalized}.`);
  };
}

/** @throws GatewayError `oauth_invalid_request` */
export function failRequest(details: string): never {
  return fail('oauth_invalid_request', { details });
}

const checkRequestName = createNameCheck();
