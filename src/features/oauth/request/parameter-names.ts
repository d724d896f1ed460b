// Names that another platform would read as something else than this gateway does.
import { fail } from '../../../core/errors/gateway-error.ts';

/** @throws GatewayError `oauth_invalid_request`. */
export type CheckName = (name: string) => void;

/** RFC 6749, 7009, 7521, 7636, 8628, 8693, 8707, 9396, 9449, OpenID Connect Core §3.1.2.1. */
const REQUEST_PARAMETERS = [
  'acr_values',
  'actor_token',
  'actor_token_type',
  'assertion',
  'audience',
  'authorization_details',
  'claims',
  'claims_locales',
  'client_assertion',
  'client_assertion_type',
  'client_id',
  'client_secret',
  'code',
  'code_challenge',
  'code_challenge_method',
  'code_verifier',
  'device_code',
  'display',
  'domain_hint',
  'dpop_jkt',
  'grant_type',
  'id_token_hint',
  'login_hint',
  'max_age',
  'nonce',
  'password',
  'prompt',
  'redirect_uri',
  'refresh_token',
  'requested_token_type',
  'resource',
  'response_mode',
  'response_type',
  'scope',
  'state',
  'subject_token',
  'subject_token_type',
  'token',
  'token_type_hint',
  'ui_locales',
  'username',
] as const;

/** Each could carry another redirect_uri past the check (RFC 9101, OpenID Connect Core §6). */
const UNSUPPORTED = ['request', 'request_uri', 'registration'] as const;

const RESERVED: ReadonlySet<string> = new Set([...REQUEST_PARAMETERS, ...UNSUPPORTED]);

/**
 * `furtherNames`: further names that the endpoint knows.
 *
 * PHP makes `redirect_uri` of `redirect.uri` and a list of `redirect_uri[]`, others read names
 * without their case: the provider would see a parameter that was never looked at here.
 */
export function createNameCheck(furtherNames: readonly string[] = []): CheckName {
  const known = new Set<string>([...REQUEST_PARAMETERS, ...furtherNames]);
  return function checkName(name) {
    if (known.has(name)) return;
    if (!/^[A-Za-z0-9_:.-]+$/.test(name)) {
      refuse('Parameter names may contain only letters, digits and _ : . -');
    }
    const normalized = name.toLowerCase().replace(/[^a-z0-9]/g, '_');
    if (normalized === name && RESERVED.has(name))
      refuse(`The parameter ${name} is not supported.`);
    if (RESERVED.has(normalized))
      refuse(`A parameter has a name that could be mistaken for ${normalized}.`);
  };
}

const refuse = (details: string): never => fail('oauth_invalid_request', { details });
