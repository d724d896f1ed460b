// What can never work with a provider is refused at start, with the reason.
import { brokerSettings } from './groups/broker.ts';
import { isBrokerMode } from './groups/oauth-mode.ts';
import { providerSettings, readProfile } from './groups/provider.ts';
import { providerClientSettings } from './groups/provider-client.ts';
import { serverSettings } from './groups/server.ts';
import type { Read } from './setting.ts';

/** One sentence, or undefined where nothing is wrong. */
type FindProviderProblem = (read: Read) => string | undefined;

export const PROVIDER_PROBLEM_FINDERS: readonly FindProviderProblem[] = [
  function findProviderIssuerProblem(read) {
    const { issuer: form } = readProfile(read);
    const issuer = read(providerSettings.issuer);
    return form === undefined || issuer === undefined || form.form.test(issuer)
      ? undefined
      : `OIDC_ISSUER: ${JSON.stringify(issuer)} cannot work with ${nameProvider(read)}: ${form.why}.`;
  },

  function findMissingAudienceProblem(read) {
    return read(serverSettings.authRequired) && read(providerSettings.audience).length === 0
      ? `OIDC_AUDIENCE is missing: ${explainClientAudience(read)}. Set OAUTH_CLIENT_ID to that client, or OIDC_AUDIENCE to what tokens name, for example OAUTH_CLIENT_ID=postern`
      : undefined;
  },

  function findAudienceClaimProblem(read) {
    return read(providerSettings.audienceClaim) === 'client_id' && handsOutIdTokens(read)
      ? 'OIDC_AUDIENCE_CLAIM=client_id cannot be used with OAUTH_ACCESS_TOKEN=id_token: ID tokens name the client in aud.'
      : undefined;
  },

  function findAccessTokenProblem(read) {
    return readProfile(read).opaque && !handsOutIdTokens(read)
      ? `OAUTH_ACCESS_TOKEN=access_token cannot work with ${nameProvider(read)}: its access tokens are opaque, so the gateway cannot check them.`
      : undefined;
  },

  function findModeProblem(read) {
    return needsBroker(read)
      ? `OAUTH_MODE=proxy cannot work with ${nameProvider(read)}: clients would get its access tokens, which are opaque, so the gateway cannot check them. Set OAUTH_MODE=broker, where clients get the ID token.`
      : undefined;
  },

  function findTokenUrlProblem(read) {
    const isForwarded = !isBrokerMode(read) && read(providerClientSettings.tokenUrl) !== undefined;
    return isForwarded && handsOutIdTokens(read) && !needsBroker(read)
      ? `OAUTH_TOKEN_URL cannot be used with OAUTH_ACCESS_TOKEN=id_token (${nameProvider(read)}) and OAUTH_MODE=proxy, which returns the provider's answer unchanged. Set OAUTH_MODE=broker.`
      : undefined;
  },

  function findAddedScopesProblem(read) {
    const { neededScope } = readProfile(read);
    const scopes = read(brokerSettings.addedScopes);
    if (!isBrokerMode(read) || neededScope === undefined) return undefined;
    return scopes.some((scope) => neededScope.form.test(scope))
      ? undefined
      : `OAUTH_ADDED_SCOPES: ${JSON.stringify(scopes.join(' '))} is not enough with ${nameProvider(read)}: ${neededScope.why}.`;
  },

  function findAddedParametersProblem(read) {
    return read(brokerSettings.resourceParameter) === 'audience' &&
      read(brokerSettings.addedParameters).some(([name]) => name === 'audience')
      ? 'OAUTH_ADDED_PARAMETERS names audience, which OAUTH_RESOURCE_PARAMETER=audience sends, too. Remove one of them.'
      : undefined;
  },
];

const nameProvider = (read: Read): string => `OIDC_PROVIDER=${read(providerSettings.provider)}`;

const handsOutIdTokens = (read: Read): boolean => read(providerSettings.accessToken) === 'id_token';

/** Only there clients get another token than the access token. */
const needsBroker = (read: Read): boolean =>
  read(serverSettings.authRequired) && !isBrokerMode(read) && readProfile(read).opaque === true;

function explainClientAudience(read: Read): string {
  if (read(providerSettings.audienceClaim) === 'client_id') {
    return 'OIDC_AUDIENCE_CLAIM=client_id compares it with the client that the token was issued to';
  }
  return handsOutIdTokens(read)
    ? 'OAUTH_ACCESS_TOKEN=id_token hands out ID tokens, which name the client'
    : `tokens of ${nameProvider(read)} name the client`;
}
