// OAUTH_TOKENS=gateway: what a login in broker mode comes to where clients get tokens of the gateway's own.
import type { ProviderEndpoints } from '../../auth/provider-metadata.ts';
import type { BrokerConfig } from '../../config/groups/oauth.ts';
import type { OwnTokensConfig } from '../../config/groups/own-tokens.ts';
import { DEFAULT_SCOPES } from '../../config/scope.ts';
import type { OwnTokens } from '../../grants/open-grants.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import { createSealedRecords, type RecordsDeps } from '../../store/seal/sealed-records.ts';
import type { BrokerTokens } from '../broker/broker.ts';
import type { ReadAsked } from '../broker/redirect-to-provider.ts';
import { createFlightRecords, createRunOnce } from '../broker/run-once.ts';
import type { Clients } from '../clients/clients.ts';
import type { LogLogin } from '../provider/issued-tokens.ts';
import type { ProviderApi } from '../provider/provider-api.ts';
import {
  buildAuthorizationParameters,
  type ProviderParametersConfig,
} from '../provider/provider-parameters.ts';
import { createWriteTokens } from './answer.ts';
import { createLogIn, type FindLoginRefusal, type GrantCode } from './log-in.ts';
import { createProviderLogins, type ReadIdentity } from './provider-login.ts';
import { createRenewGrant } from './renew-grant.ts';
import { getDefaultResources, readAskedResources } from './resources.ts';
import { createGatewayRevoke } from './revoke.ts';
import { createGatewayToken } from './token.ts';

/** What is there before there are endpoints of OAuth. */
export interface GatewayTokensParts {
  readonly ownTokens: OwnTokens;
  readonly readIdentity: ReadIdentity;
  readonly findLoginRefusal: FindLoginRefusal;
}

export interface GatewayTokensDeps extends GatewayTokensParts {
  readonly records: RecordsDeps;
  readonly clients: Clients;
  readonly api: ProviderApi;
  readonly endpoints: ProviderEndpoints;
  readonly logLogin: LogLogin;
  readonly clock: Clock;
  readonly log: Log;
}

/** Of a code, until its client redeems it. */
const CODE_TTL_SECONDS = 60;

export function createGatewayTokens(
  config: ProviderParametersConfig & Pick<BrokerConfig, 'providerClient'>,
  tokens: OwnTokensConfig,
  deps: GatewayTokensDeps,
): BrokerTokens {
  const { ownTokens, records, endpoints } = deps;
  const { codec, grants } = ownTokens;
  const providerConfig = withoutAudience(config);
  const codes = createSealedRecords<GrantCode>(records, 'grant-code', CODE_TTL_SECONDS);
  const providerLogins = createProviderLogins({ ...deps, config: providerConfig });
  const common = { ...deps, codec, grants, codes, providerLogins };
  const { token, ...logins } = createGatewayToken({
    ...common,
    config: { ...config, ...tokens },
    renewGrant: createRenewGrant({
      ...common,
      config: tokens,
      runOnce: createRunOnce(createFlightRecords(records), deps.clock),
    }),
    writeTokens: createWriteTokens(codec),
  });
  return {
    readAsked: createReadAsked(providerConfig, endpoints),
    finish: createLogIn({ ...common, baseUrl: config.baseUrl }),
    token,
    revoke: createGatewayRevoke(common),
    logins,
  };
}

/** No token of the provider is for us: it need not know whom they are for. Who logs in it has to say. */
const withoutAudience = <Config extends ProviderParametersConfig>(config: Config): Config => ({
  ...config,
  resourceParameter: 'none',
  addedScopes: [...new Set([...DEFAULT_SCOPES, ...config.addedScopes])],
});

const createReadAsked =
  (config: ProviderParametersConfig, endpoints: ProviderEndpoints): ReadAsked =>
  async (parameters, clientId) => {
    const asked = buildAuthorizationParameters(config, parameters.get('scope'), []);
    const granted = asked.scope.split(' ');
    // The gateway goes on asking whether the user may, whatever its client asks for.
    const isOffered = (await endpoints.listScopes()).includes('offline_access');
    const scopes = isOffered ? new Set([...granted, 'offline_access']) : granted;
    return {
      scope: [...scopes].join(' '),
      authorization: asked.authorization,
      scopes: granted,
      resources: readAskedResources(parameters, config, clientId) ?? getDefaultResources(config),
    };
  };
