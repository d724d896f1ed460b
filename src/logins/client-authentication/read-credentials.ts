// RFC 6749 §2.3, RFC 7521 §4.2: by what a client says who it is: one way in a request, and not two.
import { fail } from '../../errors/gateway-error.ts';
import type { RequestParameters } from '../../http/endpoint/parameters.ts';

export type ClientCredentials =
  | {
      readonly method: 'client_secret_basic' | 'client_secret_post';
      readonly clientId: string;
      readonly secret: string;
    }
  | {
      readonly method: 'private_key_jwt';
      /** `client_id`, which need not be there: the assertion says it, too. */
      readonly clientId: string | undefined;
      readonly assertion: string;
      readonly assertionType: string | undefined;
    };

/** `WWW-Authenticate`, where the client tried it (RFC 6749 §5.2). */
export const hasTriedBasic = (authorization: string | undefined): boolean =>
  authorization !== undefined && BASIC.test(authorization);

const BASIC = /^Basic(?: |$)/i;

/** Whether the request says more than an ID. */
export const hasCredentials = ({
  parameters,
  authorization,
}: {
  readonly parameters: RequestParameters;
  readonly authorization: string | undefined;
}): boolean =>
  authorization !== undefined || PROOFS.some((name) => parameters.get(name) !== undefined);

const PROOFS = ['client_secret', 'client_assertion', 'client_assertion_type'] as const;

/**
 * Undefined where the request has none.
 *
 * @throws GatewayError `oauth_invalid_request` for more than one.
 */
export function readCredentials(
  parameters: RequestParameters,
  authorization: string | undefined,
): ClientCredentials | 'malformed' | undefined {
  const clientId = parameters.get('client_id');
  const secret = parameters.get('client_secret');
  const assertion = parameters.get('client_assertion');
  const assertionType = parameters.get('client_assertion_type');
  const hasAssertion = assertion !== undefined || assertionType !== undefined;
  const tried = [authorization !== undefined, secret !== undefined, hasAssertion];
  if (tried.filter(Boolean).length > 1) {
    fail('oauth_invalid_request', {
      details:
        'The request authenticates its client in more than one way (Authorization, client_secret, client_assertion). Use one.',
    });
  }
  if (authorization !== undefined) return readBasic(authorization, clientId);
  if (secret !== undefined)
    return clientId === undefined
      ? 'malformed'
      : { method: 'client_secret_post', clientId, secret };
  if (!hasAssertion) return undefined;
  return assertion === undefined
    ? 'malformed'
    : { method: 'private_key_jwt', clientId, assertion, assertionType };
}

/** RFC 7617, with both halves encoded as a form (RFC 6749 §2.3.1). */
function readBasic(
  authorization: string,
  clientId: string | undefined,
): ClientCredentials | 'malformed' {
  const [, encoded = ''] = /^Basic +([A-Za-z0-9+/_-]+={0,2})$/i.exec(authorization) ?? [];
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = text.indexOf(':');
  const id = decodeForm(text.slice(0, Math.max(0, colon)));
  const secret = decodeForm(text.slice(colon + 1));
  const isRight = colon > 0 && id !== undefined && secret !== undefined && secret !== '';
  if (!isRight) return 'malformed';
  if (clientId !== undefined && clientId !== id) {
    fail('oauth_invalid_request', {
      details: 'The client_id is not that of the Authorization header.',
    });
  }
  return { method: 'client_secret_basic', clientId: id, secret };
}

/** Undefined where it is not encoded so. */
function decodeForm(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}
