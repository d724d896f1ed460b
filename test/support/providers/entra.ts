// Microsoft Entra: two versions side by side with an issuer each, an access token that is Microsoft Graph's, groups that may
// be too many for a token, and no `resource`.
//
// https://learn.microsoft.com/entra/identity-platform/v2-protocols-oidc (paths of v2.0)
// https://learn.microsoft.com/entra/identity-platform/access-tokens (v1.0: https://sts.windows.net/<tenant>/; tokens for Graph
//   are not for others to validate)
// https://learn.microsoft.com/troubleshoot/entra/entra-id/app-integration/validation-fails-for-access-tokens-nonce (nonce in
//   the header of tokens for Graph)
// https://github.com/microsoft/vscode/issues/254009 (AADSTS901002)
// https://github.com/punkpeye/mcp-remote/issues/217 (AADSTS9010010)
// https://github.com/AzureAD/microsoft-authentication-library-for-js/issues/5198 (a refresh needs scope)
// https://learn.microsoft.com/entra/identity-platform/reference-error-codes (AADSTS900144, AADSTS50173)
// https://learn.microsoft.com/entra/identity-platform/id-token-claims-reference#groups-overage-claim (200 groups)
// https://learn.microsoft.com/entra/identity-platform/migrate-off-email-claim-authorization (xms_edov)
import { createHash } from 'node:crypto';
import { type Habits, type Login, type Refusal, readSeconds, sendJson } from './habits.ts';
import { describePerson, OPENID_HABITS } from './openid-habits.ts';

const TENANT = '6a73c8e0-77c4-4f5c-a9b2-2f2d6e5a9b10';
const V1_ISSUER = `https://sts.windows.net/${TENANT}/`;
/** Microsoft Graph, as an application. */
const GRAPH = '00000003-0000-0000-c000-000000000000';
const MOST_GROUPS = 200;

const refuse = (description: string): Refusal => ({
  error: 'invalid_request',
  error_description: `${description} Trace ID: 0 Correlation ID: 0`,
});

export const ENTRA: Habits = {
  ...OPENID_HABITS,
  title: 'Entra',
  settings: { OIDC_PROVIDER: 'entra' },
  issuerPath: `/${TENANT}/v2.0`,
  paths: {
    keys: `/${TENANT}/discovery/v2.0/keys`,
    authorize: `/${TENANT}/oauth2/v2.0/authorize`,
    token: `/${TENANT}/oauth2/v2.0/token`,
    userinfo: '/oidc/userinfo',
    endSession: `/${TENANT}/oauth2/v2.0/logout`,
  },
  spentRefusal: {
    error: 'invalid_grant',
    error_description:
      'AADSTS50173: The provided grant has expired due to it being revoked, a fresh auth token is needed.',
  },
  refuseAuthorization(asked) {
    if (!asked.has('resource')) return undefined;
    const namesScope = (asked.get('scope') ?? '').includes('://');
    return refuse(
      namesScope
        ? "AADSTS9010010: The resource parameter provided in the request doesn't match with the requested scopes."
        : "AADSTS901002: The 'resource' request parameter is not supported.",
    );
  },
  refuseRefresh: (_login, form) =>
    form.has('scope')
      ? undefined
      : refuse("AADSTS900144: The request body must contain the following parameter: 'scope'."),
  describeInIdToken(login) {
    const { email_verified: _, ...claims } = describePerson(login);
    return {
      ...claims,
      ver: '2.0',
      tid: TENANT,
      oid: createObjectId(login),
      preferred_username: login.person.email,
      // An optional claim of the application, as docs/provider-entra.md has it configured.
      ...(login.person.isEmailVerified && { xms_edov: true }),
      ...describeGroups(login),
    };
  },
  describeInUserinfo(login) {
    const { email_verified: _, ...claims } = describePerson(login);
    return claims;
  },
  /** What is signed has the hash of the nonce: nobody but Graph knows. */
  async createAccessToken({ person }, here) {
    const now = readSeconds(here);
    const [, ...rest] = (
      await here.issuer.sign({
        iss: V1_ISSUER,
        aud: GRAPH,
        sub: person.sub,
        ver: '1.0',
        iat: now,
        exp: now + 3600,
      })
    ).split('.');
    const header = { typ: 'JWT', alg: 'RS256', kid: here.issuer.keys[0]?.kid, nonce: 'not-hashed' };
    return [Buffer.from(JSON.stringify(header)).toString('base64url'), ...rest].join('.');
  },
  // The document of version 1.0, whose issuer is not at its address.
  createRoutes: ({ origin }) => ({
    [`/${TENANT}/.well-known/openid-configuration`]: (_req, res) =>
      sendJson(res, 200, {
        issuer: V1_ISSUER,
        authorization_endpoint: `${origin}/${TENANT}/oauth2/authorize`,
        token_endpoint: `${origin}/${TENANT}/oauth2/token`,
        jwks_uri: `${origin}/${TENANT}/discovery/v2.0/keys`,
      }),
  }),
};

/** One per person and tenant, where `sub` is one per person and application. */
const createObjectId = ({ person }: Login): string =>
  createHash('sha256')
    .update(person.sub)
    .digest('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, '$1-$2-$3-$4-$5');

function describeGroups(login: Login) {
  const { groups } = login.person;
  if (groups.length <= MOST_GROUPS) return { groups };
  const endpoint = `https://graph.windows.net/${TENANT}/users/${createObjectId(login)}/getMemberObjects`;
  return { _claim_names: { groups: 'src1' }, _claim_sources: { src1: { endpoint } } };
}
