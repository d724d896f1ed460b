// What can never work with a provider is refused at start, with the reason.
import type { Config } from './config.ts';
import { PROVIDER_PROFILES } from './provider-profiles.ts';

interface Check {
  readonly isWrong: (config: Config) => boolean;
  readonly say: (config: Config) => string;
}

const profileOf = ({ oidcProvider }: Config) => PROVIDER_PROFILES[oidcProvider];
const provider = ({ oidcProvider }: Config) => `OIDC_PROVIDER=${oidcProvider}`;

/** Only there clients get another token than the access token. */
const needsBroker = (config: Config): boolean =>
  config.authRequired && config.oauthMode === 'proxy' && profileOf(config).opaque === true;

const CHECKS: readonly Check[] = [
  {
    isWrong: (config) => {
      const { issuer } = profileOf(config);
      const { oidcIssuer } = config;
      return issuer !== undefined && oidcIssuer !== undefined && !issuer.form.test(oidcIssuer);
    },
    say: (config) =>
      `OIDC_ISSUER: ${JSON.stringify(config.oidcIssuer)} cannot work with ${provider(config)}: ${profileOf(config).issuer?.why}.`,
  },
  {
    isWrong: ({ authRequired, oidcAudience }) => authRequired && oidcAudience.length === 0,
    say: (config) =>
      `OIDC_AUDIENCE is missing: ${reasonForClient(config)}; set OAUTH_CLIENT_ID to that client, or OIDC_AUDIENCE to what tokens name.`,
  },
  {
    isWrong: ({ oidcAudienceClaim, oauthAccessToken }) =>
      oidcAudienceClaim === 'client_id' && oauthAccessToken === 'id_token',
    say: () =>
      'OIDC_AUDIENCE_CLAIM=client_id does not go with OAUTH_ACCESS_TOKEN=id_token: ID tokens name the client in aud.',
  },
  {
    isWrong: (config) =>
      profileOf(config).opaque === true && config.oauthAccessToken === 'access_token',
    say: (config) =>
      `OAUTH_ACCESS_TOKEN=access_token cannot work with ${provider(config)}: its access tokens are opaque, nobody else can check them.`,
  },
  {
    isWrong: needsBroker,
    say: (config) =>
      `OAUTH_MODE=proxy cannot work with ${provider(config)}: clients would get its access tokens, which are opaque and can be checked by the provider only; set OAUTH_MODE=broker, where they get the ID token.`,
  },
  {
    isWrong: (config) =>
      config.oauthMode === 'proxy' &&
      config.oauthAccessToken === 'id_token' &&
      config.oauthTokenUrl !== undefined &&
      !needsBroker(config),
    say: (config) =>
      `OAUTH_TOKEN_URL cannot be used with OAUTH_ACCESS_TOKEN=id_token (${provider(config)}) and OAUTH_MODE=proxy, which hands out the provider's answer as it is; set OAUTH_MODE=broker.`,
  },
  {
    isWrong: (config) => {
      const { neededScope } = profileOf(config);
      const { oauthMode, oauthAddedScopes } = config;
      return (
        oauthMode === 'broker' &&
        neededScope !== undefined &&
        !oauthAddedScopes.some((scope) => neededScope.form.test(scope))
      );
    },
    say: (config) =>
      `OAUTH_ADDED_SCOPES: ${JSON.stringify(config.oauthAddedScopes.join(' '))} is not enough with ${provider(config)}: ${profileOf(config).neededScope?.why}.`,
  },
  {
    isWrong: ({ oauthResourceParameter, oauthAddedParameters }) =>
      oauthResourceParameter === 'audience' &&
      oauthAddedParameters.some(([name]) => name === 'audience'),
    say: () =>
      'OAUTH_ADDED_PARAMETERS names audience, which OAUTH_RESOURCE_PARAMETER=audience sends as well; leave one of them out.',
  },
];

/** What does not go together, one sentence each. */
export const providerProblems = (config: Config): readonly string[] =>
  CHECKS.filter(({ isWrong }) => isWrong(config)).map(({ say }) => say(config));

function reasonForClient(config: Config): string {
  if (config.oidcAudienceClaim === 'client_id') {
    return 'OIDC_AUDIENCE_CLAIM=client_id compares it with the client that the token was made for';
  }
  return config.oauthAccessToken === 'id_token'
    ? 'OAUTH_ACCESS_TOKEN=id_token hands out ID tokens, which are made for the client'
    : `tokens of ${provider(config)} are made for the client`;
}
