// OAUTH_MODE=broker: an authorization server of its own before the provider's.
import type { Clock } from '../../../core/clock.ts';
import type { BrokerConfig } from '../../../core/config/groups/oauth.ts';
import type { ProviderEndpoints } from '../../../core/provider/provider-endpoints.ts';
import { createSealedRecords, type RecordsDeps } from '../../../core/seal/sealed-records.ts';
import type { Clients } from '../clients/clients.ts';
import type { Approvals } from '../consent/approvals.ts';
import type { Browsers } from '../consent/browser.ts';
import type { RedirectToProvider } from '../consent/consent.ts';
import type { LogLogin } from '../provider/login-log.ts';
import type { NoteClient } from '../provider/note-client.ts';
import type { ProviderApi } from '../provider/provider-api.ts';
import type { RecentAnswers } from '../refresh/recent-answers.ts';
import type { ReadAuthorizationRequest } from '../request/authorization-request.ts';
import type { OwnResources } from '../request/resource-indicators.ts';
import { type AuthorizationCode, createCallback } from './callback.ts';
import { createFlightRecords } from './flight-records.ts';
import { createObtainTokens, type ObtainTokensDeps } from './obtain-tokens.ts';
import { createBrokerRequestReader } from './read-request.ts';
import { createBrokerRedirect, type Login } from './redirect-to-provider.ts';
import { createRefreshTokens } from './refresh-tokens.ts';
import { createBrokerRevoke } from './revoke.ts';
import { createSingleFlight } from './single-flight.ts';
import { createBrokerToken } from './token.ts';

/** `baseUrl` is the issuer of its own. */
export type BrokerSettings = BrokerConfig & OwnResources;

export interface BrokerDeps {
  readonly records: RecordsDeps;
  readonly recentAnswers: RecentAnswers;
  readonly clock: Clock;
  readonly clients: Clients;
  readonly browsers: Browsers;
  readonly approvals: Approvals;
  readonly api: ProviderApi;
  readonly endpoints: ProviderEndpoints;
  readonly inspectToken: ObtainTokensDeps['inspectToken'];
  readonly noteClient: NoteClient;
  readonly logLogin: LogLogin;
}

/** The user has ten minutes to log in, the client one to redeem its code. */
const LOGIN_TTL_SECONDS = 600;
const CODE_TTL_SECONDS = 60;

export interface Broker {
  readonly readRequest: ReadAuthorizationRequest;
  readonly redirectToProvider: RedirectToProvider;
  readonly callback: ReturnType<typeof createCallback>;
  readonly token: ReturnType<typeof createBrokerToken>;
  readonly revoke: ReturnType<typeof createBrokerRevoke>;
}

export function createBroker(config: BrokerSettings, deps: BrokerDeps): Broker {
  const { records, recentAnswers, clock, clients, browsers, approvals, api, endpoints } = deps;
  const { baseUrl, providerClient } = config;
  const logins = createSealedRecords<Login>(records, 'login', LOGIN_TTL_SECONDS);
  const codes = createSealedRecords<AuthorizationCode>(records, 'code', CODE_TTL_SECONDS);
  const refreshTokens = createRefreshTokens(records, config.refreshTtlSeconds);
  const obtainTokens = createObtainTokens({ ...deps, config, refreshTokens });
  return {
    readRequest: createBrokerRequestReader({ own: config, clients, browsers, approvals }),
    redirectToProvider: createBrokerRedirect({
      config,
      clientId: providerClient.id,
      logins,
      endpoints,
    }),
    callback: createCallback({ baseUrl, browsers, logins, codes, endpoints }),
    token: createBrokerToken({
      config,
      clients,
      api,
      codes,
      refreshTokens,
      recentAnswers,
      runOnce: createSingleFlight(createFlightRecords(records), clock),
      obtainTokens,
      logLogin: deps.logLogin,
    }),
    revoke: createBrokerRevoke({
      providerClient,
      clients,
      api,
      endpoints,
      refreshTokens,
      recentAnswers,
    }),
  };
}
