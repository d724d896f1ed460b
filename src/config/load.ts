import { isSafeForTokens } from '../platform/address.ts';
import { REGISTERED_CLIENT_PREFIX } from '../platform/ids.ts';
import { freezeDeep } from '../platform/json.ts';
import { type Config, readConfig, SETTINGS } from './config.ts';
import { clientSettings, consentSettings } from './groups/clients.ts';
import { outboundSettings } from './groups/http.ts';
import { readLimitsConfig } from './groups/limits.ts';
import { loginPolicySettings, ownTokenSettings } from './groups/own-tokens.ts';
import {
  clientId,
  idJagSettings,
  isBrokerMode,
  mode,
  providerClientSettings,
  providerSettings,
  readProfile,
} from './groups/provider.ts';
import { adminSettings, serverSettings, siteSettings } from './groups/server.ts';
import {
  isClusterUrl,
  isSharedStore,
  needsStateSecret,
  readStoreConfig,
  stateSecrets,
  storeSettings,
} from './groups/store.ts';
import { auditSettings } from './groups/telemetry.ts';
import { describeMisspelled, findMisspelledVariables, findRemovedSettings } from './misspelled.ts';
import { ConfigError, formatProblem } from './problem.ts';
import { describeInvalid } from './rules.ts';
import {
  createReader,
  type Env,
  findVariable,
  hideSecrets,
  isDefault,
  type Read,
  readAll,
  type Setting,
} from './setting.ts';

/**
 * Reads the settings from environment variables. An empty variable counts as unset: compose files pass empty variables.
 *
 * @throws ConfigError with every problem at once.
 */
export function loadConfig(env: Env): Config {
  const read = createReader(env);
  const given = readGiven(read, env);
  const invalid = SETTINGS.flatMap((setting) => findInvalidValue(setting, env) ?? []);
  const contradictions = PROBLEM_FINDERS.flatMap((find) => find(given) || []);
  const problems = [
    ...findRemovedSettings(env),
    ...invalid,
    ...contradictions.map((message) => ({ message })),
  ];
  if (problems.length > 0) {
    // A missing setting may be the one whose variable is misspelled.
    throw new ConfigError([
      ...problems.map(formatProblem),
      ...findMisspelledVariables(env).map(describeMisspelled),
    ]);
  }
  return freezeDeep(readConfig(read, env));
}

// Problems with the settings, one sentence each: invalid values, and combinations that are not allowed.

/**
 * The input of the functions that find problems: the groups that several of them need; the others are read with `read`. Invalid
 * values read as the default.
 */
type Given = ReturnType<typeof readGiven>;

function readGiven(read: Read, env: Env) {
  const provider = readAll(providerSettings, read);
  const profile = readProfile(read);
  const store = readStoreConfig(read);
  /** True if no variable is set. An invalid value is reported separately, and its setting does not count as missing. */
  const isMissing = (setting: Setting<unknown>) => findVariable(setting, env) === undefined;
  /** The variables whose value differs from the default: a line copied from .env.example with its default is harmless. */
  const listChanged = (settings: readonly Setting<unknown>[]) =>
    settings.filter((setting) => !isDefault(setting, read)).map(({ variable }) => variable);
  return {
    read,
    isMissing,
    listChanged,
    authRequired: read(serverSettings.authRequired),
    baseUrl: read(serverSettings.baseUrl),
    isBroker: isBrokerMode(read),
    clientId: read(clientId),
    tokens: readAll(ownTokenSettings, read),
    idJag: readAll(idJagSettings, read),
    admin: readAll(adminSettings, read),
    store,
    isShared: isSharedStore(store),
    provider,
    profile,
    isGithub: profile.login === 'github',
    providerName: `OIDC_PROVIDER=${provider.provider}`,
    hasNoIssuer: isMissing(providerSettings.issuer) && provider.issuer === undefined,
  };
}

/** Returns one sentence about an invalid combination for each setting at fault, or nothing. */
type FindProblem = (given: Given) => string | readonly string[] | false | undefined;

/** The placeholder in the README and other examples. */
const PLACEHOLDER = '…';

function findInvalidValue(setting: Setting<unknown>, env: Env) {
  const { rule } = setting;
  const given = findVariable(setting, env);
  if (given?.text === PLACEHOLDER)
    return {
      place: given.name,
      message: `${PLACEHOLDER} is a placeholder from the documentation. Replace it with your own value, or remove the variable.`,
    };
  if (given === undefined || rule.parse(given.text) !== undefined) return undefined;
  const visible = hideSecrets(given.text, setting);
  const shown = visible === null ? 'the value given (not shown)' : JSON.stringify(visible);
  return { place: given.name, message: describeInvalid(shown, rule, given.text) };
}

const PROBLEM_FINDERS: readonly FindProblem[] = [
  ({ authRequired, hasNoIssuer }) =>
    authRequired &&
    hasNoIssuer &&
    'OIDC_ISSUER is missing: set it to the issuer URL of your OpenID provider, for example OIDC_ISSUER=https://id.example.com (or set AUTH_REQUIRED=false for local development). To try Postern without a provider, run: postern dev',

  // The endpoint is BASE_URL/mcp, so this address would end in /mcp/mcp.
  ({ baseUrl }) => {
    const right = baseUrl.replace(/([^/])(\/mcp)+$/, '$1');
    return (
      right !== baseUrl &&
      `BASE_URL: ${JSON.stringify(baseUrl)} ends in /mcp, which Postern adds itself. Set BASE_URL=${right} (clients then connect to ${right}/mcp).`
    );
  },

  // RFC 8414 §2: an issuer uses https; http is accepted on this machine.
  ({ isBroker, baseUrl }) =>
    isBroker &&
    !isSafeForTokens(baseUrl) &&
    `BASE_URL: ${JSON.stringify(baseUrl)} is not valid with OAUTH_MODE=broker. It must be https, or http on localhost, 127.0.0.1 or [::1].`,

  ({ read }) =>
    read(serverSettings.metricsPort) === read(serverSettings.port) &&
    'METRICS_PORT and PORT are the same. Choose another METRICS_PORT, for example METRICS_PORT=9464, or remove it to serve /metrics on PORT.',

  ({ isBroker, isMissing }) =>
    isBroker &&
    isMissing(clientId) &&
    'OAUTH_CLIENT_ID is missing: OAUTH_MODE=broker needs a client that is registered at the provider, for example OAUTH_CLIENT_ID=postern',

  ({ isBroker, authRequired, hasNoIssuer }) =>
    isBroker &&
    !authRequired &&
    hasNoIssuer &&
    'OIDC_ISSUER is missing: OAUTH_MODE=broker needs it, for example OIDC_ISSUER=https://id.example.com.',

  ({ isShared, read, isMissing }) =>
    isShared &&
    needsStateSecret(read(mode), read(consentSettings.kind)) &&
    isMissing(stateSecrets) &&
    'OAUTH_STATE_SECRET is missing: all replicas need the same secret of at least 32 bytes, for example the output of openssl rand -base64 48. This adds one to .env: echo "OAUTH_STATE_SECRET=$(openssl rand -base64 48)" >> .env',

  ({ isShared, read }) =>
    read(serverSettings.workers) !== 1 &&
    !isShared &&
    `WORKERS: ${read(serverSettings.workers)} needs REDIS_URL. Without Redis, sessions and registered clients are kept in DATA_DIR, which only one process can use. Remove WORKERS, or set REDIS_URL, for example REDIS_URL=redis://localhost:6379`,

  ({ store, read }) => {
    if (read(storeSettings.reads) !== 'tracked') return undefined;
    if (store.kind !== 'redis')
      return 'STORE_READS: tracked needs REDIS_URL. Without Redis, sessions and logins are read from the memory of the one process anyway. Remove STORE_READS, or set REDIS_URL, for example REDIS_URL=redis://localhost:6379';
    return (
      isClusterUrl(store.url) &&
      'STORE_READS: tracked does not work with a Redis Cluster (?cluster=true in REDIS_URL). Set STORE_READS=direct, or use one Redis, or Redis Sentinel.'
    );
  },

  ({ isShared, read }) => {
    const limits = readLimitsConfig(read);
    return (
      limits.enabled &&
      limits.counting === 'leased' &&
      !isShared &&
      'RATE_LIMIT_COUNTING: "leased" needs REDIS_URL: it is for processes that share windows. Without Redis there is one process, which counts in its memory. Remove RATE_LIMIT_COUNTING, or set REDIS_URL, for example REDIS_URL=redis://localhost:6379'
    );
  },

  ({ read }) =>
    ![siteSettings.logoUrl, siteSettings.logoFile].map(read).includes(undefined) &&
    'SERVICE_LOGO_URL and SERVICE_LOGO_FILE are both set. There is one logo: remove one of them.',

  ({ read, isMissing }) =>
    read(auditSettings.required) &&
    isMissing(auditSettings.destination) &&
    'AUDIT_LOG is missing: AUDIT_REQUIRED=true needs it. Set AUDIT_LOG=stdout, or AUDIT_LOG=file:/var/log/postern/audit.log.',

  ({ read, isMissing }) =>
    read(auditSettings.claims) &&
    isMissing(auditSettings.destination) &&
    'AUDIT_LOG is missing: AUDIT_CLAIMS=true needs it. Set AUDIT_LOG=stdout, or AUDIT_LOG=file:/var/log/postern/audit.log.',

  ({ admin, authRequired }) =>
    admin.groups.length > 0 &&
    !authRequired &&
    "ADMIN_GROUPS: the operators' page needs a login, and with AUTH_REQUIRED=false there is none. Remove ADMIN_GROUPS, or set AUTH_REQUIRED=true.",

  ({ admin, isBroker, read }) =>
    admin.groups.length > 0 &&
    admin.clients.length === 0 &&
    !isBroker &&
    [providerClientSettings.authorizationUrl, providerClientSettings.tokenUrl, clientId]
      .map(read)
      .includes(undefined) &&
    "ADMIN_GROUPS: no user can log in to the operators' page, because clients of this gateway get their tokens elsewhere. Set OAUTH_AUTHORIZATION_URL, OAUTH_TOKEN_URL and OAUTH_CLIENT_ID (or OAUTH_MODE=broker), or name in ADMIN_CLIENTS the clients whose tokens its API accepts.",

  ({ admin, clientId: own }) =>
    admin.clients
      .filter((client) => client === own || client.startsWith(REGISTERED_CLIENT_PREFIX))
      .map(
        (wrong) =>
          `ADMIN_CLIENTS: ${JSON.stringify(wrong)} is ${wrong === own ? 'the client through which all MCP clients log in (OAUTH_CLIENT_ID)' : 'a client that registered itself here'}: any of its tokens could end sessions. Name clients at the provider that only operators use.`,
      ),

  ({ admin }) =>
    admin.clients.length > 0 &&
    admin.groups.length === 0 &&
    'ADMIN_GROUPS is missing: ADMIN_CLIENTS names the clients of operators, and ADMIN_GROUPS their groups. Set it to those groups, for example ADMIN_GROUPS=operators',

  ({ isBroker, listChanged }) =>
    !isBroker &&
    listChanged(OF_OWN_TOKENS).map(
      (useless) =>
        `${useless} is for the gateway's own tokens, but in proxy mode clients get tokens from the provider. Remove it, or set OAUTH_MODE=broker.`,
    ),

  ({ isBroker, tokens, listChanged }) =>
    isBroker &&
    !tokens.acceptsProviderTokens &&
    listChanged(OF_PROVIDER_TOKENS).map(
      (useless) =>
        `${useless} has no effect: the gateway issues its own tokens, whatever the provider's are like. Remove it. To accept tokens from the provider in addition to its own, set OAUTH_ACCEPT_PROVIDER_TOKENS=true.`,
    ),

  // Problems with ID_JAG.

  ({ isBroker, idJag, listChanged }) =>
    isBroker &&
    !idJag.isEnabled &&
    listChanged([idJagSettings.issuers]).length > 0 &&
    'ID_JAG_ISSUERS has no effect without ID_JAG=true: no assertion is accepted. Set ID_JAG=true, or remove ID_JAG_ISSUERS.',

  // The gateway cannot be the identity provider of its own users.
  ({ idJag, baseUrl }) => {
    const own = idJag.issuers.find((issuer) => issuer.replace(/\/+$/, '') === baseUrl);
    return (
      idJag.isEnabled &&
      own !== undefined &&
      `ID_JAG_ISSUERS: ${JSON.stringify(own)} is this gateway (BASE_URL), which issues no such assertions. Name the identity provider of your users.`
    );
  },

  ({ isBroker, tokens, isMissing }) =>
    isBroker &&
    tokens.acceptsProviderTokens &&
    isMissing(providerSettings.audience) &&
    'OIDC_AUDIENCE is missing: OAUTH_ACCEPT_PROVIDER_TOKENS=true accepts tokens from the provider that name it. Set it to the audience of your service accounts, for example OIDC_AUDIENCE=https://mcp.example.com/mcp',

  ({ read }) =>
    read(outboundSettings.httpsProxy) !== undefined &&
    read(clientSettings.allowedHosts).includes('*') &&
    'CIMD_ALLOWED_HOSTS: * cannot be used with HTTPS_PROXY or HTTP_PROXY, because the proxy resolves the host names, so the gateway cannot refuse addresses inside your network. List the hosts.',

  ({ isBroker, tokens, read }) =>
    isBroker &&
    !tokens.acceptsProviderTokens &&
    read(loginPolicySettings.exemptClients).length > 0 &&
    'LOGIN_EXEMPT_CLIENTS has no effect without OAUTH_ACCEPT_PROVIDER_TOKENS=true: it applies to tokens from the provider, and none are accepted. Remove it.',

  // Refuses to start, with the reason, if the combination can never work with the provider.
  ({ isBroker, profile, provider: { issuer }, providerName }) => {
    const required = (isBroker ? profile.loginIssuer : undefined) ?? profile.issuer;
    // An issuer on this machine is a stand-in, which behaves like the provider but has a different address.
    return (
      required !== undefined &&
      issuer !== undefined &&
      !(isSafeForTokens(issuer) && new URL(issuer).protocol === 'http:') &&
      !required.form.test(issuer) &&
      `OIDC_ISSUER: ${JSON.stringify(issuer)} cannot work with ${providerName}: ${required.why}.`
    );
  },

  ({ isBroker, tokens, profile: { ownTokensOnly }, providerName, isMissing }) => {
    // The setting that would allow tokens from the provider.
    const inProxyMode = isMissing(mode) ? 'OAUTH_MODE (proxy)' : 'OAUTH_MODE=proxy';
    const beside = tokens.acceptsProviderTokens && 'OAUTH_ACCEPT_PROVIDER_TOKENS=true';
    const wrong = isBroker ? beside : inProxyMode;
    return (
      ownTokensOnly !== undefined &&
      wrong &&
      `${wrong} cannot work with ${providerName}: ${ownTokensOnly}, so the gateway could not verify its tokens. Set OAUTH_MODE=broker, where clients get the gateway's own tokens, and remove OAUTH_ACCEPT_PROVIDER_TOKENS.`
    );
  },

  // Problems with OIDC_PROVIDER=github, which has no discovery, no key set and no ID tokens.

  ({ isGithub, listChanged }) =>
    !isGithub &&
    listChanged([providerSettings.githubUrl]).length > 0 &&
    'GITHUB_URL has no effect without OIDC_PROVIDER=github. Set OIDC_PROVIDER=github, or remove GITHUB_URL.',

  ({ isGithub, provider: { issuer, githubUrl } }) =>
    isGithub &&
    issuer !== githubUrl &&
    `OIDC_ISSUER: ${JSON.stringify(issuer)} cannot work with OIDC_PROVIDER=github, whose issuer is GITHUB_URL (${githubUrl}). Remove OIDC_ISSUER; for a GitHub Enterprise Server set GITHUB_URL to its address.`,

  // Access tokens are sent to this URL, and its unsigned responses identify the user.
  ({ isGithub, provider: { githubUrl } }) => {
    if (!isGithub) return undefined;
    if (!isSafeForTokens(githubUrl))
      return `GITHUB_URL: ${JSON.stringify(githubUrl)} is not valid. It must be https, or http on localhost, 127.0.0.1 or [::1].`;
    return (
      new URL(githubUrl).pathname !== '/' &&
      `GITHUB_URL: ${JSON.stringify(githubUrl)} is not valid. It must be the address of GitHub itself, without a path, for example https://github.example.com.`
    );
  },

  ({ isGithub, isBroker, isMissing }) =>
    isGithub &&
    isBroker &&
    isMissing(providerClientSettings.secret) &&
    'OAUTH_CLIENT_SECRET is missing: GitHub issues no tokens without the secret of the OAuth app or GitHub App.',

  ({ isGithub, idJag, provider }) =>
    isGithub &&
    idJag.isEnabled &&
    idJag.issuers.includes(provider.githubUrl) &&
    'ID_JAG=true cannot work with only OIDC_PROVIDER=github: GitHub issues no such assertions. Name the identity provider that issues them in ID_JAG_ISSUERS, or remove ID_JAG.',

  ({ isGithub, listChanged }) =>
    isGithub &&
    listChanged(USELESS_WITH_GITHUB).map(
      (useless) =>
        `${useless} has no effect with OIDC_PROVIDER=github, which has neither ID tokens nor a userinfo or revocation endpoint: the gateway uses GitHub's API. Remove it.`,
    ),

  // In proxy mode, clients present tokens from the provider.
  ({ authRequired, isBroker, provider: { audience, audienceClaim }, providerName }) => {
    const reason =
      audienceClaim === 'client_id'
        ? 'OIDC_AUDIENCE_CLAIM=client_id compares it with the client that the token was issued to'
        : `tokens of ${providerName} name the client`;
    return (
      authRequired &&
      !isBroker &&
      audience.length === 0 &&
      `OIDC_AUDIENCE is missing: ${reason}. Set OAUTH_CLIENT_ID to that client, or OIDC_AUDIENCE to the audience of the tokens, for example OAUTH_CLIENT_ID=postern`
    );
  },

  ({ authRequired, isBroker, profile, providerName }) =>
    authRequired &&
    !isBroker &&
    profile.quirks.opaqueAccessTokens &&
    `OAUTH_MODE=proxy cannot work with ${providerName}: clients would get its access tokens, which are opaque, so the gateway cannot verify them. Set OAUTH_MODE=broker, where clients get the gateway's own tokens.`,
];

/** Settings that describe tokens from the provider. */
const OF_PROVIDER_TOKENS = [providerSettings.audience, providerSettings.audienceClaim];

const OF_OWN_TOKENS: readonly Setting<unknown>[] = [
  loginPolicySettings,
  idJagSettings,
  ownTokenSettings,
].flatMap((group) => Object.values(group));

const USELESS_WITH_GITHUB: readonly Setting<unknown>[] = [
  providerSettings.jwksUrl,
  providerClientSettings.revocationUrl,
  loginPolicySettings.groupsClaim,
  loginPolicySettings.followsGroupsOverage,
];
