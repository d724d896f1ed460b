// OAUTH_TOKENS=gateway: what a login in broker mode comes to where clients get tokens of the gateway's own.
import type { ProviderEndpoints } from '../../auth/provider-metadata.ts';
import type { BrokerConfig } from '../../config/groups/oauth.ts';
import type { TokensConfig } from '../../config/groups/own-tokens.ts';
import type { ServerConfig } from '../../config/groups/server.ts';
import { MAX_SCOPES } from '../../grants/token-codec.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import {
  createSealedRecords,
  type RecordsDeps,
  type SealedRecords,
} from '../../store/seal/sealed-records.ts';
import type { Audit } from '../../telemetry/audit/audit.ts';
import { createAccount } from '../account/account.ts';
import { createBrowserSessions } from '../account/browser-sessions.ts';
import type { BrokerTokens } from '../broker/broker-tokens.ts';
import type { AskedOfProvider, Login, ReadAsked } from '../broker/redirect-to-provider.ts';
import { createRefreshTokens } from '../broker/refresh-tokens.ts';
import { createFlightRecords, createRunOnce } from '../broker/run-once.ts';
import type { Clients } from '../clients/clients.ts';
import type { Browsers } from '../consent/browser.ts';
import type { LogLogin } from '../provider/issued-tokens.ts';
import {
  buildAuthorizationParameters,
  type ProviderParametersConfig,
} from '../provider/provider-parameters.ts';
import type { OwnResources } from '../request/parameters.ts';
import { createWriteTokens } from './answer.ts';
import { createEarlierLogins } from './earlier-logins.ts';
import { createLogIn, type GrantCode } from './log-in.ts';
import { type GatewayTokensParts, withoutAudience } from './open-gateway-tokens.ts';
import { getDefaultResources, readAskedResources } from './resources.ts';
import { createGatewayRevoke } from './revoke.ts';
import { createGatewayToken } from './token.ts';

export interface GatewayTokensDeps extends GatewayTokensParts {
  readonly records: RecordsDeps;
  readonly clients: Clients;
  readonly endpoints: ProviderEndpoints;
  readonly logins: SealedRecords<Login>;
  readonly browsers: Browsers;
  /** Undefined without `AUDIT_LOG`. */
  readonly audit: Audit | undefined;
  readonly logLogin: LogLogin;
  readonly clock: Clock;
  readonly log: Log;
}

export interface GatewayTokensConfig
  extends ProviderParametersConfig,
    OwnResources,
    Pick<BrokerConfig, 'providerClient' | 'refreshTtlSeconds'>,
    Pick<ServerConfig, 'displayName'> {}

/** Of a code, until its client redeems it. */
const CODE_TTL_SECONDS = 60;

export function createGatewayTokens(
  config: GatewayTokensConfig,
  tokens: TokensConfig,
  deps: GatewayTokensDeps,
): BrokerTokens {
  const { ownTokens, records, endpoints } = deps;
  const { codec, grants } = ownTokens;
  const providerConfig = withoutAudience(config);
  const codes = createSealedRecords<GrantCode>(records, 'grant-code', CODE_TTL_SECONDS);
  const earlierLogins = createEarlierLogins({
    ...deps,
    config: providerConfig,
    tokens,
    ttlSeconds: config.refreshTtlSeconds,
    store: records.store,
    refreshTokens: createRefreshTokens(records, config.refreshTtlSeconds),
    grants,
    runOnce: createRunOnce(createFlightRecords(records), deps.clock),
  });
  const common = { ...deps, codec, grants, codes, earlierLogins };
  const account = createAccount({
    ...deps,
    baseUrl: config.baseUrl,
    displayName: config.displayName,
    clientId: config.providerClient.id,
    buildParameters: () => buildAuthorizationParameters(providerConfig, undefined, []),
    browserSessions: createBrowserSessions(config.baseUrl, records, deps.clock),
    grants,
  });
  const { token, ...logins } = createGatewayToken({
    ...common,
    config: { ...config, ...tokens },
    writeTokens: createWriteTokens(codec),
  });
  return {
    readAsked: createReadAsked(providerConfig, endpoints),
    finish: createLogIn({
      ...common,
      baseUrl: config.baseUrl,
      finishAccount: account.finish,
    }),
    token,
    revoke: createGatewayRevoke(common),
    logins,
    accountEndpoints: account.endpoints,
  };
}

const createReadAsked =
  (config: ProviderParametersConfig, endpoints: ProviderEndpoints): ReadAsked =>
  async (parameters, clientId) => {
    const asked = await askForLogin(config, endpoints, parameters.get('scope'));
    return {
      ...asked,
      resources: readAskedResources(parameters, config, clientId) ?? getDefaultResources(config),
    };
  };

/** What the provider is asked for; `config` is one without an audience, `scope` what the client asks for. */
export async function askForLogin(
  config: ProviderParametersConfig,
  endpoints: Pick<ProviderEndpoints, 'listScopes'>,
  scope: string | undefined,
): Promise<
  Pick<AskedOfProvider, 'scope' | 'authorization'> & { readonly scopes: readonly string[] }
> {
  const asked = buildAuthorizationParameters(config, scope, []);
  const granted = asked.scope.split(' ').slice(0, MAX_SCOPES);
  // The gateway goes on asking whether the user may, whatever its client asks for.
  const isOffered = (await endpoints.listScopes()).includes('offline_access');
  const scopes = isOffered ? new Set([...granted, 'offline_access']) : granted;
  return { scope: [...scopes].join(' '), authorization: asked.authorization, scopes: granted };
}
