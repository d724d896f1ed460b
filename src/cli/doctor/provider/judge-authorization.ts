// The provider's answer to the authorization request as a finding.
import { quote } from '../../../platform/text.ts';
import { type Advice, type Finding, failure, ok, unknown } from '../finding.ts';
import type { AuthorizationOutcome } from './ask-authorization.ts';

const CHECK = 'provider.redirect-uri';

/** `url` is the authorization request. */
export function judgeAuthorization(outcome: AuthorizationOutcome, url: string): Finding {
  const { searchParams, host } = new URL(url);
  const redirectUri = searchParams.get('redirect_uri') ?? '';
  const clientId = searchParams.get('client_id') ?? '';
  switch (outcome.kind) {
    case 'accepted':
      return ok(
        CHECK,
        `The provider knows the client ${quote(clientId)} and its redirect URI ${redirectUri}.`,
      );
    case 'redirect-uri-unknown':
      return failure(CHECK, `The provider does not know the redirect URI ${redirectUri}.`, {
        why: `It says: ${outcome.said}`,
        setting: 'BASE_URL',
        remedy: `register exactly ${redirectUri} for the client ${quote(clientId)} at the provider. If the address is not yours, correct BASE_URL.`,
      });
    case 'client-unknown':
      return failure(
        'provider.client-id',
        `The provider does not know the client ${quote(clientId)}, or does not let it log users in.`,
        {
          why: `It says: ${outcome.said}`,
          setting: 'OAUTH_CLIENT_ID',
          remedy:
            'set it to the client ID as the provider shows it, and check that OIDC_ISSUER names the tenant or realm in which the client is.',
        },
      );
    case 'refused':
      return failure(
        'provider.authorization-request',
        `The provider refuses the gateway's authorization request: ${outcome.said}`,
        adviseOnRefusal(outcome.error),
      );
    case 'error-page':
      return failure(
        'provider.authorization-request',
        'The provider shows an error page in place of a login page.',
        {
          why: `It says: ${outcome.said}`,
          setting: 'OAUTH_CLIENT_ID',
          remedy: `check the client ${quote(clientId)} and its redirect URI ${redirectUri} at the provider.`,
        },
      );
    case 'not-told':
      return unknown(
        CHECK,
        `whether ${host} knows the redirect URI ${redirectUri}: it tells only after a login.`,
        { remedy: 'compare it with what is registered at the provider, character by character.' },
      );
  }
}

const REFUSALS: Readonly<Record<string, Advice>> = {
  invalid_scope: {
    setting: 'OAUTH_ADDED_SCOPES, OAUTH_ALLOWED_SCOPES',
    remedy: 'name only scopes that the client has at the provider.',
  },
  invalid_target: {
    setting: 'OIDC_AUDIENCE, OAUTH_RESOURCE_PARAMETER',
    remedy:
      'register the gateway as an API (resource) at the provider and set OIDC_AUDIENCE to its identifier, or set OAUTH_RESOURCE_PARAMETER=none if the provider does not know resource.',
  },
  unauthorized_client: {
    setting: 'OAUTH_CLIENT_ID',
    remedy: 'allow the authorization code grant for this client at the provider.',
  },
  access_denied: {
    setting: 'OAUTH_CLIENT_ID, OIDC_AUDIENCE',
    remedy:
      'let the client use this API at the provider (a policy or a grant that names it), or correct OIDC_AUDIENCE.',
  },
};

const adviseOnRefusal = (error: string): Advice =>
  REFUSALS[error] ?? {
    setting: 'OAUTH_ADDED_SCOPES, OAUTH_ADDED_PARAMETERS, OAUTH_RESOURCE_PARAMETER',
    remedy: "compare what the gateway asks for with the client's settings at the provider.",
  };
