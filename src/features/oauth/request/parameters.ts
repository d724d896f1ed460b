// Spec §4.6–§4.8: where parameters come from, and how often.
import { fail } from '../../../core/errors/gateway-error.ts';
import { isObject } from '../../../core/json.ts';
import type { RequestBody } from '../../../core/message.ts';
import { type CheckName, createNameCheck } from './parameter-names.ts';

/** RFC 8707 §2: the one parameter that may be given more than once. */
const REPEATABLE = 'resource';

export interface Parameters {
  /** The value, or undefined when it is missing or empty (RFC 6749 §3.1 treats both alike). */
  get(name: string): string | undefined;
  /** @throws GatewayError `oauth_invalid_request` naming the parameter. */
  require(name: string): string;
  has(name: string): boolean;
  /** All pairs in the order received. */
  readonly pairs: readonly (readonly [name: string, value: string])[];
}

/** @throws GatewayError `oauth_invalid_request` for a repeated parameter, or by its name. */
export function parseQuery(query: string, checkName: CheckName = checkRequestName): Parameters {
  if (query.split('&', MAX_PARAMETERS + 1).length > MAX_PARAMETERS) refuseTooMany();
  return createParameters([...new URLSearchParams(query)], checkName);
}

const checkRequestName = createNameCheck();

/**
 * Form or JSON object with string members.
 *
 * @throws GatewayError `oauth_invalid_request` for a repeated or non-string member, or by its name.
 */
export function parseBody(body: RequestBody, checkName: CheckName = checkRequestName): Parameters {
  if (body.type === 'form') return parseQuery(body.text, checkName);
  const members = stringMembers(body.value);
  // A flat object of strings has two for each member, unless one is given twice.
  const strings = body.text.match(JSON_STRING) ?? [];
  if (strings.length !== 2 * members.length) {
    fail('oauth_invalid_request', { details: 'A member of the body appears twice.' });
  }
  return createParameters(members, checkName);
}

const JSON_STRING = /"(?:[^"\\]|\\.)*"/g;

/** Far more than any client sends: many cost time, and anybody may send them. */
const MAX_PARAMETERS = 100;

const refuseTooMany = (): never =>
  fail('oauth_invalid_request', {
    details: `The request has more than ${MAX_PARAMETERS} parameters.`,
  });

function createParameters(
  pairs: readonly (readonly [string, string])[],
  checkName: CheckName,
): Parameters {
  const values = new Map<string, string>();
  for (const [name, value] of pairs) {
    checkName(name);
    if (values.has(name) && name !== REPEATABLE) {
      fail('oauth_invalid_request', {
        details: `The parameter ${shortenName(name)} appears twice.`,
      });
    }
    values.set(name, value);
  }
  const get = (name: string) => values.get(name) || undefined;
  return {
    get,
    require: (name) =>
      get(name) ?? fail('oauth_invalid_request', { details: `${name} is missing.` }),
    has: (name) => values.has(name),
    pairs,
  };
}

function stringMembers(value: unknown): (readonly [string, string])[] {
  if (!isObject(value)) {
    return fail('oauth_invalid_request', { details: 'The body must be a JSON object.' });
  }
  const members = Object.entries(value);
  if (members.length > MAX_PARAMETERS) refuseTooMany();
  return members.map(([name, member]) => {
    if (typeof member === 'string') return [name, member] as const;
    return fail('oauth_invalid_request', {
      details: `The member ${shortenName(name)} must be a string.`,
    });
  });
}

/** A caller's own word in an error: short, so that nobody can make the service recite. */
const shortenName = (name: string) => (name.length > 40 ? `${name.slice(0, 40)}...` : name);
