// The client registered at the provider for the gateway, and the endpoints where it is used.
import { anyText, httpUrl, oneOf } from '../rules.ts';
import { defineSetting, NO_DEFAULT, type Read } from '../setting.ts';
import { chooseByProvider } from './provider.ts';
import { clientId } from './provider-client-id.ts';

/** It stands in for the clients of the gateway. */
export interface ProviderClientConfig {
  readonly id: string | undefined;
  readonly secret: string | undefined;
  /** How the secret is sent: in the form, or as HTTP Basic (RFC 6749 §2.3.1). */
  readonly authMethod: 'post' | 'basic';
}

/** In broker mode the discovery document says what is undefined here. */
export interface ProviderEndpointsConfig {
  readonly authorizationUrl: string | undefined;
  readonly tokenUrl: string | undefined;
  readonly revocationUrl: string | undefined;
}

export const providerClientSettings = {
  clientId,
  clientSecret: defineSetting({
    variable: 'OAUTH_CLIENT_SECRET',
    rule: anyText,
    default: NO_DEFAULT,
    summary: 'The secret of that client.',
    details: "It is sent to the provider only for the gateway's own clients.",
    isSecret: true,
  }),
  clientAuth: defineSetting<'post' | 'basic'>({
    variable: 'OAUTH_CLIENT_AUTH',
    rule: oneOf('post', 'basic'),
    default: chooseByProvider((profile) => profile.clientAuth),
    summary: 'How the secret is sent.',
    details: '`post` is `client_secret_post`, `basic` is `client_secret_basic`.',
  }),
  authorizationUrl: defineSetting({
    variable: 'OAUTH_AUTHORIZATION_URL',
    rule: httpUrl,
    default: NO_DEFAULT,
    summary: "The provider's authorization endpoint; discovered in broker mode.",
    details:
      "In proxy mode nobody can log in without it: `/oauth/authorize` answers `server_error`. In broker mode, set it only to override the discovery document. A query in it is kept and wins over the client's parameters (for example `scope`).",
  }),
  tokenUrl: defineSetting({
    variable: 'OAUTH_TOKEN_URL',
    rule: httpUrl,
    default: NO_DEFAULT,
    summary: "The provider's token endpoint; discovered in broker mode.",
    details:
      'In proxy mode nobody can log in without it: `/oauth/token` answers `server_error`. In broker mode, set it only to override the discovery document.',
  }),
  revocationUrl: defineSetting({
    variable: 'OAUTH_REVOCATION_URL',
    rule: httpUrl,
    default: NO_DEFAULT,
    summary: "The provider's revocation endpoint; discovered in broker mode.",
    details:
      'RFC 7009. In proxy mode `/oauth/revoke` answers `server_error` without it. In broker mode, set it only to override the discovery document.',
  }),
};

export const readProviderClient = (read: Read): ProviderClientConfig => ({
  id: read(clientId),
  secret: read(providerClientSettings.clientSecret),
  authMethod: read(providerClientSettings.clientAuth),
});

export const readProviderEndpoints = (read: Read): ProviderEndpointsConfig => ({
  authorizationUrl: read(providerClientSettings.authorizationUrl),
  tokenUrl: read(providerClientSettings.tokenUrl),
  revocationUrl: read(providerClientSettings.revocationUrl),
});
