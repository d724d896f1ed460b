// The client registered at the provider for the gateway, and the endpoints where it is used.
import { anyText, httpUrl, oneOf } from '../rules.ts';
import { defineSetting, type Read, readAll, type ValuesOf } from '../setting.ts';
import { chooseByProvider } from './provider.ts';
import { clientId } from './provider-client-id.ts';

/** It stands in for the clients of the gateway. */
const ownClientSettings = {
  id: clientId,
  secret: defineSetting('OAUTH_CLIENT_SECRET', anyText, {
    summary: 'The secret of that client.',
    details: "It is sent to the provider only for the gateway's own clients.",
    isSecret: true,
  }),
  authMethod: defineSetting('OAUTH_CLIENT_AUTH', oneOf('post', 'basic'), {
    default: chooseByProvider((profile) => profile.clientAuth),
    summary: 'How the secret is sent.',
    details: '`post` is `client_secret_post`, `basic` is `client_secret_basic`.',
  }),
};

/** In broker mode the discovery document says what is undefined here. */
const endpointSettings = {
  authorizationUrl: defineSetting('OAUTH_AUTHORIZATION_URL', httpUrl, {
    summary: "The provider's authorization endpoint; discovered in broker mode.",
    details:
      "In proxy mode nobody can log in without it: `/oauth/authorize` answers `server_error`. In broker mode, set it only to override the discovery document. A query in it is kept and wins over the client's parameters (for example `scope`).",
  }),
  tokenUrl: defineSetting('OAUTH_TOKEN_URL', httpUrl, {
    summary: "The provider's token endpoint; discovered in broker mode.",
    details:
      'In proxy mode nobody can log in without it: `/oauth/token` answers `server_error`. In broker mode, set it only to override the discovery document.',
  }),
  revocationUrl: defineSetting('OAUTH_REVOCATION_URL', httpUrl, {
    summary: "The provider's revocation endpoint; discovered in broker mode.",
    details:
      'RFC 7009. In proxy mode `/oauth/revoke` answers `server_error` without it. In broker mode, set it only to override the discovery document.',
  }),
};

export const providerClientSettings = { ...ownClientSettings, ...endpointSettings };

export type ProviderClientConfig = ValuesOf<typeof ownClientSettings>;

export const readProviderClient = (read: Read) => ({
  providerClient: readAll(ownClientSettings, read),
  endpoints: readAll(endpointSettings, read),
});
