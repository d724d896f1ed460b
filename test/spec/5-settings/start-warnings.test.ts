import { describe, expect, test } from 'vitest';
import { SETTINGS } from '../../../src/config/config.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { findMisspelledVariables } from '../../../src/config/misspelled.ts';
import { ConfigError } from '../../../src/config/problem.ts';
import { startGateway, type TestGateway } from '../../support/gateway/gateway.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';

type Env = Readonly<Record<string, string>>;

let gateway: TestGateway;

/** A public gateway as it should be; the provider cannot be reached, which is no matter here. */
const HEALTHY: Env = {
  BASE_URL: 'https://gw.example',
  NODE_ENV: 'production',
  OIDC_ISSUER: 'https://idp.example',
  OIDC_JWKS_URL: 'https://idp.example/jwks',
  OAUTH_MODE: 'broker',
  OAUTH_CLIENT_ID: 'client-1',
  TRUST_PROXY: '1',
};
const LITERAL: Env = { OAUTH_MODE: 'proxy' };

async function warningsOf(env: Env): Promise<readonly string[]> {
  const never = () => new Promise<never>(() => {});
  gateway = closeAfterTest(await startGateway({ env, deps: { fetch: never } }));
  return gateway.log.flatMap(({ level, msg }) => (level === 'warn' ? [msg] : []));
}

describe('warnings about risky settings', () => {
  test.each<{ what: string; env: Env }>([
    { what: 'a public gateway in broker mode', env: HEALTHY },
    {
      what: 'a public gateway in literal mode whose registration is closed',
      env: { ...HEALTHY, ...LITERAL, DCR_ACCESS_TOKEN: 'a-secret-of-the-house' },
    },
    { what: 'a gateway on loopback', env: { OIDC_ISSUER: 'http://localhost:8080' } },
    {
      what: 'a gateway on loopback that allows everything',
      env: {
        BASE_URL: 'http://127.0.0.1:3000',
        HOST: '0.0.0.0',
        RATE_LIMIT_ENABLED: 'false',
        CIMD_ALLOWED_HOSTS: '*',
        OAUTH_ALLOWED_SCOPES: '*',
        TRUST_PROXY: 'all',
      },
    },
    { what: 'by IPv6', env: { BASE_URL: 'http://[::1]:3000' } },
    { what: 'BASE_URL unset, listening here', env: { BASE_URL: '', HOST: '127.0.0.1' } },
    { what: 'BASE_URL unset, listening on one address', env: { BASE_URL: '', HOST: '10.0.0.5' } },
    {
      what: 'BASE_URL set to its default, listening on all addresses',
      env: { BASE_URL: 'http://localhost:3000', HOST: '0.0.0.0' },
    },
  ])('§10 a healthy start prints nothing at warn: $what', async ({ env }) => {
    expect(await warningsOf(env)).toEqual([]);
  });

  test.each<{ env: Env; begins: string }>([
    { env: { BASE_URL: '', HOST: '0.0.0.0' }, begins: 'BASE_URL is not set' },
    { env: { BASE_URL: '', HOST: '::' }, begins: 'BASE_URL is not set' },
    { env: { BASE_URL: '', HOST: '0:0:0:0:0:0:0:0' }, begins: 'BASE_URL is not set' },
    {
      env: { ...HEALTHY, BASE_URL: '', HOST: '127.0.0.1' },
      begins: 'BASE_URL is not set in production',
    },
    { env: { ...HEALTHY, BASE_URL: '', HOST: '0.0.0.0' }, begins: 'BASE_URL is not set, but' },
    { env: { ...HEALTHY, NODE_ENV: '' }, begins: 'NODE_ENV is not production' },
    { env: { ...HEALTHY, NODE_ENV: 'staging' }, begins: 'NODE_ENV is not production' },
    {
      env: {
        ...HEALTHY,
        ...LITERAL,
        DCR_ACCESS_TOKEN: 'a-secret-of-the-house',
        BASE_URL: 'http://gw.example',
      },
      begins: 'BASE_URL is an http address',
    },
    {
      env: { ...HEALTHY, OIDC_ISSUER: 'http://idp.example' },
      begins: 'OIDC_ISSUER is an http address',
    },
    {
      env: { ...HEALTHY, OIDC_JWKS_URL: 'HTTP://idp.example/jwks' },
      begins: 'OIDC_JWKS_URL is an http address',
    },
    { env: { ...HEALTHY, RATE_LIMIT_ENABLED: 'false' }, begins: 'RATE_LIMIT_ENABLED=false' },
    { env: { ...HEALTHY, CIMD_ALLOWED_HOSTS: '*' }, begins: 'CIMD_ALLOWED_HOSTS=*' },
    { env: { ...HEALTHY, OAUTH_ALLOWED_SCOPES: '*' }, begins: 'OAUTH_ALLOWED_SCOPES=*' },
    { env: { ...HEALTHY, TRUST_PROXY: 'all' }, begins: 'TRUST_PROXY=all' },
    { env: { ...HEALTHY, TRUST_PROXY: '' }, begins: 'TRUST_PROXY=all' },
    { env: { ...HEALTHY, ...LITERAL }, begins: 'OAUTH_MODE=proxy with open registration' },
    {
      env: {
        ...HEALTHY,
        OAUTH_MODE: '',
        OAUTH_AUTHORIZATION_URL: 'https://idp.example/authorize',
        OAUTH_TOKEN_URL: 'https://idp.example/token',
      },
      begins: 'OAUTH_MODE=proxy with open registration',
    },
    {
      env: {
        ...HEALTHY,
        ...LITERAL,
        DCR_ACCESS_TOKEN: 'a-secret-of-the-house',
        CIMD_ALLOWED_HOSTS: 'claude.ai',
      },
      begins: 'OAUTH_MODE=proxy with open registration',
    },
    { env: { AUTH_REQUIRED: 'false', HOST: '10.0.0.5' }, begins: 'AUTH_REQUIRED=false' },
  ])('§10 $env is worth one line: $begins', async ({ env, begins }) => {
    const warnings = await warningsOf(env);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]?.startsWith(begins), warnings[0]).toBe(true);
  });

  test('§10 the line on literal mode names OAUTH_MODE=broker', async () => {
    expect((await warningsOf({ ...HEALTHY, ...LITERAL }))[0]).toContain('Set OAUTH_MODE=broker');
  });

  test('§10 who cannot log in, by what is missing, is said at info, with OAUTH_MODE=broker as a way out', async () => {
    const env = { ...HEALTHY, ...LITERAL, OAUTH_TOKEN_URL: 'https://idp.example/token' };
    await warningsOf({ ...env, DCR_ACCESS_TOKEN: 'a-secret-of-the-house' });
    const [line, ...more] = gateway?.log.filter(({ msg }) => msg.startsWith('Users cannot')) ?? [];
    expect(more).toEqual([]);
    expect(line?.level).toBe('info');
    expect(line?.msg).toMatch(/needs OAUTH_AUTHORIZATION_URL\. Set OAUTH_MODE=broker/);
  });

  test('§10 that nobody can log in is a warning where nothing says that it is meant', async () => {
    const env = { OIDC_ISSUER: 'http://localhost:8080', OAUTH_MODE: '' };
    const [line, ...more] = await warningsOf(env);
    expect(more).toEqual([]);
    expect(line).toMatch(/^Users cannot log in through this service: .* Set OAUTH_MODE=broker/);
    expect(await warningsOf({ ...env, ...LITERAL })).toEqual([]);
  });

  test('§10 each risk has a line of its own', async () => {
    const warnings = await warningsOf({
      BASE_URL: 'http://gw.example',
      OIDC_ISSUER: 'http://idp.example',
      OIDC_JWKS_URL: 'http://idp.example/jwks',
      RATE_LIMIT_ENABLED: 'false',
      CIMD_ALLOWED_HOSTS: '*',
      // Without meaning in proxy mode, so no risk either.
      OAUTH_ALLOWED_SCOPES: '*',
    });
    expect(warnings.map((line) => line.split(/[= ]/)[0])).toEqual([
      'NODE_ENV',
      'BASE_URL',
      'OIDC_ISSUER',
      'OIDC_JWKS_URL',
      'RATE_LIMIT_ENABLED',
      'CIMD_ALLOWED_HOSTS',
      'TRUST_PROXY',
      'OAUTH_MODE',
    ]);
  });
});

describe('BASE_URL', () => {
  const problemsOf = (baseUrl: string): readonly string[] => {
    try {
      loadConfig({ OIDC_ISSUER: 'https://idp.example', BASE_URL: baseUrl });
    } catch (error) {
      if (error instanceof ConfigError) return error.problems;
      throw error;
    }
    return [];
  };

  test.each(['https://gw.example/mcp', 'https://gw.example/mcp/', 'https://gw.example/mcp/mcp'])(
    '§10 BASE_URL=%s is an error that says what to set',
    (baseUrl) => {
      expect(problemsOf(baseUrl)).toEqual([
        expect.stringMatching(/^BASE_URL: .* ends in \/mcp.*Set BASE_URL=https:\/\/gw\.example \(/),
      ]);
    },
  );

  test.each(['https://mcp', 'https://gw.example/mcp/base', 'https://gw.example/xmcp'])(
    '§10 BASE_URL=%s is right',
    (baseUrl) => {
      expect(problemsOf(baseUrl)).toEqual([]);
    },
  );
});

describe('misspelled variables', () => {
  test.each([
    ['MCP_RATE_LIMIT', 'MCP_RATE_LIMIT_MAX'],
    ['MCP_SESSION_TTL', 'MCP_SESSION_TTL_SECONDS'],
    ['MCP_SESION_TTL_SECONDS', 'MCP_SESSION_TTL_SECONDS'],
    ['MCP_STREAM', 'MCP_STREAMS'],
    ['OIDC_ISUER', 'OIDC_ISSUER'],
    ['OIDC_ISSUER_URL', 'OIDC_ISSUER'],
    ['OIDC_JWKS_URI', 'OIDC_JWKS_URL'],
    ['OAUTH_CLIENTID', 'OAUTH_CLIENT_ID'],
    ['OAUTH_CLIENT', 'OAUTH_CLIENT_ID'],
    ['DCR_CLIENT_TTL_SECONDS', 'DCR_CLIENT_TTL'],
    ['CIMD_HOSTS', 'CIMD_ALLOWED_HOSTS'],
    ['BASE_URI', 'BASE_URL'],
    ['BASEURL', 'BASE_URL'],
    ['base_url', 'BASE_URL'],
    ['REDIS_URI', 'REDIS_URL'],
    ['DATA_DRI', 'DATA_DIR'],
    ['LOGLEVEL', 'LOG_LEVEL'],
    ['NODE_EVN', 'NODE_ENV'],
    ['TRUST_PROXIES', 'TRUST_PROXY'],
    ['ALLOWED_ORIGIN', 'ALLOWED_ORIGINS'],
    ['AUTH_REQUIERD', 'AUTH_REQUIRED'],
    ['RATE_LIMIT_MAX', 'MCP_RATE_LIMIT_MAX'],
    ['RATE_LIMITS_ENABLED', 'RATE_LIMIT_ENABLED'],
    ['MAX_TOKEN_BYTE', 'MAX_TOKEN_BYTES'],
    ['MAX_BODY', 'MAX_BODY_BYTES'],
    ['METRICS_ENABLE', 'METRICS_ENABLED'],
    ['SHUTDOWN_DELAY', 'SHUTDOWN_DELAY_MS'],
    ['SERVICE_DISPLAYNAME', 'SERVICE_DISPLAY_NAME'],
  ])('§10 %s: the nearest is %s', (variable, nearest) => {
    expect(findMisspelledVariables({ [variable]: 'x' })).toEqual([{ variable, nearest }]);
  });

  test('§10 every setting is known', () => {
    const all = SETTINGS.map(({ variable }) => [variable, 'x'] as const);
    expect(findMisspelledVariables(Object.fromEntries(all))).toEqual([]);
  });

  const FOREIGN = `
    PATH HOME PWD OLDPWD SHLVL TERM LANG LC_ALL LANGUAGE USER USERNAME LOGNAME SHELL HOSTNAME HOSTTYPE TZ TMPDIR TEMP
    EDITOR PAGER DISPLAY COLUMNS LINES IFS UID EUID MAIL SSH_AUTH_SOCK XDG_RUNTIME_DIR XDG_DATA_DIRS XDG_DATA_HOME
    XDG_CONFIG_DIRS DBUS_SESSION_BUS_ADDRESS INVOCATION_ID JOURNAL_STREAM SYSTEMD_EXEC_PID STATE_DIRECTORY
    HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY http_proxy https_proxy no_proxy FTP_PROXY
    NODE_OPTIONS NODE_PATH NODE_VERSION NODE_EXTRA_CA_CERTS NODE_NO_WARNINGS NODE_DEBUG NODE_TLS_REJECT_UNAUTHORIZED
    NODE_HOME YARN_VERSION NPM_TOKEN npm_config_loglevel npm_package_name npm_lifecycle_event INIT_CWD COLOR CI DEBUG
    FORCE_COLOR NO_COLOR UV_THREADPOOL_SIZE SSL_CERT_FILE SSL_CERT_DIR OPENSSL_CONF BASH_ENV ENV
    KUBERNETES_PORT KUBERNETES_PORT_443_TCP KUBERNETES_PORT_443_TCP_ADDR KUBERNETES_SERVICE_HOST
    KUBERNETES_SERVICE_PORT KUBERNETES_SERVICE_PORT_HTTPS
    POSTERN_PORT POSTERN_PORT_3000_TCP POSTERN_PORT_3000_TCP_ADDR POSTERN_PORT_3000_TCP_PORT POSTERN_PORT_3000_TCP_PROTO
    POSTERN_SERVICE_HOST POSTERN_SERVICE_PORT POSTERN_SERVICE_PORT_HTTP
    MCP_PORT MCP_PORT_3000_TCP MCP_SERVICE_HOST MCP_SERVICE_PORT MCP_SERVICE_PORT_HTTP OIDC_PORT OIDC_SERVICE_HOST
    OAUTH_PORT_80_TCP_ADDR OAUTH_SERVICE_PORT_WEB REDIS_PORT_6379_TCP REDIS_SERVICE_HOST REDIS_SERVICE_PORT_REDIS
    REDIS_NAME REDIS_HOST REDIS_PORT REDIS_PASSWORD REDIS_TLS_URL DATABASE_URL MONGO_URL AMQP_URL
    PORT_3000_TCP PORT_HTTP PORTS HOSTS HOST_IP POD_NAME POD_IP POD_NAMESPACE CONTAINER_NAME DYNO WEB_CONCURRENCY
    K_SERVICE K_REVISION FLY_APP_NAME RAILWAY_PUBLIC_DOMAIN RENDER_EXTERNAL_URL VERCEL_URL SITE_URL PUBLIC_URL
    WEBSITE_HOSTNAME AWS_REGION AWS_ACCESS_KEY_ID AZURE_CLIENT_ID GOOGLE_APPLICATION_CREDENTIALS
    MCP_TIMEOUT MCP_TOOL_TIMEOUT MAX_MCP_OUTPUT_TOKENS MCP_SERVER_NAME MCP_USER MCP_SESSION MCP_API_KEY MCP_LOG_LEVEL
    OAUTH2_PROXY_CLIENT_ID OAUTHLIB_INSECURE_TRANSPORT AUTH_SECRET AUTH_URL LOG_FORMAT LOG_FILE LOG_DIR DATA_PATH DATA
    LOG BASE NODE SERVICE_NAME ALLOWED_METHODS METRICS_PORT BASE_PATH MAX_OLD_SPACE_SIZE TRUST OTEL_SERVICE_NAME
    OTEL_EXPORTER_OTLP_ENDPOINT VIRTUAL_HOST LETSENCRYPT_HOST TRAEFIK_ENABLE WATCHTOWER_NO_PULL COMPOSE_PROJECT_NAME
  `
    .trim()
    .split(/\s+/);

  test.each(FOREIGN)('§10 %s is no misspelled setting', (variable) => {
    expect(findMisspelledVariables({ [variable]: 'x' })).toEqual([]);
  });
});
