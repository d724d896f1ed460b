// OAUTH_MODE=broker: an authorization server of its own before the provider's.
import type { Clock } from '../../../core/clock.ts';
import type { BrokerConfig } from '../../../core/config/groups/oauth.ts';
import type { ProviderEndpoints } from '../../../core/provider/provider-endpoints.ts';
import type { Clients } from '../clients/clients.ts';
import type { Approvals } from '../consent/approvals.ts';
import type { Browsers } from '../consent/browser.ts';
import type { Proceed } from '../consent/consent.ts';
import type { LogLogin } from '../provider/login-log.ts';
import type { ProviderApi } from '../provider/provider-api.ts';
import type { ReadRequest } from '../request/authorization-request.ts';
import { createSealedRecords, type RecordsDeps } from '../sealed-records.ts';
import { createCallback, type Grant } from './callback.ts';
import { createLogin, type Login } from './login.ts';
import { createObtainTokens, type ObtainTokensDeps } from './obtain-tokens.ts';
import { createReadRequest } from './read-request.ts';
import { createRefreshTokens } from './refresh-tokens.ts';
import { createBrokerRevoke } from './revoke.ts';
import { createSingleFlight } from './single-flight.ts';
import { createBrokerToken } from './token.ts';

/** `baseUrl` is the issuer of its own. */
export type BrokerSettings = BrokerConfig & { readonly baseUrl: string };

export interface BrokerDeps {
  readonly records: RecordsDeps;
  readonly clock: Clock;
  readonly clients: Clients;
  readonly browsers: Browsers;
  readonly approvals: Approvals;
  readonly api: ProviderApi;
  readonly endpoints: ProviderEndpoints;
  readonly inspectToken: ObtainTokensDeps['inspectToken'];
  readonly logLogin: LogLogin;
}

/** The user has ten minutes to log in, the client one to redeem its code. */
const LOGIN_TTL_SECONDS = 600;
const CODE_TTL_SECONDS = 60;

export interface Broker {
  readonly readRequest: ReadRequest;
  readonly toProvider: Proceed;
  readonly callback: ReturnType<typeof createCallback>;
  readonly token: ReturnType<typeof createBrokerToken>;
  readonly revoke: ReturnType<typeof createBrokerRevoke>;
}

export function createBroker(config: BrokerSettings, deps: BrokerDeps): Broker {
  const { records, clock, clients, browsers, approvals, api, endpoints } = deps;
  const { baseUrl, providerClient } = config;
  const logins = createSealedRecords<Login>(records, 'login', LOGIN_TTL_SECONDS);
  const grants = createSealedRecords<Grant>(records, 'code', CODE_TTL_SECONDS);
  const refreshTokens = createRefreshTokens(records, config.refreshTtlSeconds);
  const obtainTokens = createObtainTokens({ ...deps, config, refreshTokens });
  return {
    readRequest: createReadRequest({ baseUrl, clients, browsers, approvals }),
    toProvider: createLogin({
      config,
      clientId: providerClient.id,
      logins,
      endpoints,
    }),
    callback: createCallback({ baseUrl, browsers, logins, grants, endpoints }),
    token: createBrokerToken({
      config,
      clients,
      api,
      grants,
      refreshTokens,
      runOnce: createSingleFlight(records, clock),
      obtainTokens,
    }),
    revoke: createBrokerRevoke({ providerClient, clients, api, endpoints, refreshTokens }),
  };
}
