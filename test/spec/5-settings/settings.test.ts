import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { describe, expect, test } from 'vitest';
import { SETTINGS } from '../../../src/config/config.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { ConfigError } from '../../../src/config/problem.ts';
import { requireSentinelUrl } from '../../../src/config/sentinel-url.ts';
import { uncommentSettings } from '../../support/gateway/documentation-pages.ts';

const ISSUER = 'https://idp.example';

function problemsOf(env: Readonly<Record<string, string>>): readonly string[] {
  try {
    loadConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

describe('the README', () => {
  test('§10 the settings of the README for production start as they are written', () => {
    const readme = readFileSync(new URL('../../../README.md', import.meta.url), 'utf8');
    const [, block = ''] = /^## Production$.*?^```sh$\n(.*?)^```$/ms.exec(readme) ?? [];
    const settings = block.replaceAll('…', 's'.repeat(48));
    const env = parseEnv(uncommentSettings(settings)) as Record<string, string>;
    expect(env).toHaveProperty('OIDC_PROVIDER');
    expect(problemsOf(env)).toEqual([]);
    expect(problemsOf(parseEnv(settings) as Record<string, string>)).toEqual([]);
  });
});

describe('placeholders', () => {
  test.each(SETTINGS.map(({ variable }) => variable))('§10 %s=… is refused', (variable) => {
    expect(problemsOf({ OIDC_ISSUER: ISSUER, [variable]: '…' })).toContain(
      `${variable}: … is a placeholder from the documentation. Replace it with your own value, or remove the variable.`,
    );
  });
});

describe('what is missing', () => {
  test('§10 a misspelled variable is named beside what is wrong', () => {
    expect(problemsOf({ OIDC_ISSUR: ISSUER })).toEqual([
      expect.stringMatching(
        /^OIDC_ISSUER is missing: .*To try Postern without a provider, run: postern dev$/,
      ),
      'OIDC_ISSUR is set, but Postern has no such setting. Did you mean OIDC_ISSUER?',
    ]);
    expect(problemsOf({ OIDC_ISSUER: ISSUER, OAUTH_CLIENT: 'x' })).toEqual([]);
  });

  test.each([
    { variable: 'OAUTH_STATE_SECRET', value: 'too short' },
    { variable: 'OAUTH_CLIENT_ID', value: 'svc-1' },
    { variable: 'OIDC_ISSUER', value: 'idp.example' },
  ])('§10 $variable=$value is wrong, and not missing as well', ({ variable, value }) => {
    const right = {
      OIDC_ISSUER: ISSUER,
      OAUTH_MODE: 'broker',
      OAUTH_CLIENT_ID: 'client-1',
      OAUTH_STATE_SECRET: 's'.repeat(32),
      REDIS_URL: 'redis://redis.example',
    };
    for (const authRequired of ['true', 'false']) {
      const env = { ...right, AUTH_REQUIRED: authRequired, [variable]: value };
      expect(problemsOf(env)).toEqual([
        expect.stringMatching(`^${variable}: .* is not valid. It must be `),
      ]);
    }
  });
});

describe('defaults', () => {
  test('§10 an issuer is all that is needed', () => {
    const once = { windowMs: 60_000, max: { ip: 10, user: undefined, global: 1000 } };
    expect(loadConfig({ OIDC_ISSUER: ISSUER })).toMatchObject({
      server: {
        port: 3000,
        host: '0.0.0.0',
        baseUrl: 'http://localhost:3000',
        environment: 'development',
        displayName: 'Postern',
        logLevel: 'info',
        metricsEnabled: false,
        shutdownDelayMs: 0,
      },
      http: {
        allowedOrigins: [],
        allowedHosts: [],
        trustProxy: { kind: 'all' },
        maxBodyBytes: 1_048_576,
      },
      store: { kind: 'embedded', dataDir: './data' },
      mcp: { sessions: { keyPrefix: 'mcp:session:', ttlSeconds: 86_400 } },
      auth: {
        required: true,
        provider: {
          issuer: ISSUER,
          audience: [
            'http://localhost:3000/mcp',
            'http://localhost:3000',
            'http://localhost:3000/',
          ],
        },
        clockToleranceSeconds: 5,
        signatureMemory: 4096,
      },
      oauth: {
        mode: 'proxy',
        isModeSet: false,
        providerClient: { id: undefined, secret: undefined, authMethod: 'post' },
        registration: { ttlSeconds: 2_592_000 },
        consent: { kind: 'off' },
        stateSecret: undefined,
      },
      limits: {
        enabled: true,
        groups: {
          mcp: { windowMs: 60_000, max: { ip: 100, user: undefined, global: 10_000 } },
          dcr: { ...once, windowMs: 3_600_000 },
          authorize: once,
        },
      },
    });
  });

  test('§5.5 without authentication the address to listen on is loopback, no issuer is needed', () => {
    expect(loadConfig({ AUTH_REQUIRED: 'false' })).toMatchObject({
      server: { host: '127.0.0.1' },
      auth: { required: false },
      oauth: { provider: undefined },
    });
    expect(loadConfig({ AUTH_REQUIRED: 'false', HOST: '::' }).server.host).toBe('::');
  });

  test('§10 an empty variable counts as unset', () => {
    const empty = Object.fromEntries(SETTINGS.map(({ variable }) => [variable, '']));
    expect(loadConfig({ ...empty, OIDC_ISSUER: ISSUER })).toEqual(
      loadConfig({ OIDC_ISSUER: ISSUER }),
    );
  });

  test('§10 BASE_URL loses its slash, follows PORT, and makes the default audience', () => {
    expect(loadConfig({ OIDC_ISSUER: ISSUER, PORT: '8080' }).server.baseUrl).toBe(
      'http://localhost:8080',
    );
    const config = loadConfig({ OIDC_ISSUER: `${ISSUER}/`, BASE_URL: 'https://gw.example/x/' });
    expect(config.server.baseUrl).toBe('https://gw.example/x');
    expect(config.oauth.provider?.audience).toEqual([
      'https://gw.example/x/mcp',
      'https://gw.example/x',
      'https://gw.example/x/',
    ]);
    expect(config.oauth.provider?.issuer).toBe(`${ISSUER}/`);
  });

  test('§10 lists are split at commas, origins and hosts are lower case', () => {
    const config = loadConfig({
      OIDC_ISSUER: ISSUER,
      OIDC_AUDIENCE: 'api://Gateway, other',
      ALLOWED_ORIGINS: 'https://App.example , vscode-file://vscode-app',
      ALLOWED_HOSTS: 'GW.example:8443,[::1]',
    });
    expect(config.oauth.provider?.audience).toEqual(['api://Gateway', 'other']);
    expect(config.http.allowedOrigins).toEqual(['https://app.example', 'vscode-file://vscode-app']);
    expect(config.http.allowedHosts).toEqual(['gw.example:8443', '[::1]']);
  });

  test('§10 the values that .env.example shows are the defaults', () => {
    const text = readFileSync(new URL('../../../.env.example', import.meta.url), 'utf8');
    const shown = parseEnv(text.replace(/^#(?=[A-Z_]+=.)/gm, ''));
    expect(Object.keys(shown).length).toBeGreaterThan(40);
    expect(loadConfig({ ...shown, OIDC_ISSUER: ISSUER })).toEqual(
      // The mode is the same, and now it is meant.
      loadConfig({ OIDC_ISSUER: ISSUER, OAUTH_MODE: 'proxy' }),
    );
  });

  test('§10 the configuration cannot be changed', () => {
    const isFrozenDeep = (value: unknown): boolean =>
      typeof value !== 'object' ||
      value === null ||
      (Object.isFrozen(value) && Object.values(value).every(isFrozenDeep));
    expect(isFrozenDeep(loadConfig({ OIDC_ISSUER: ISSUER }))).toBe(true);
  });
});

describe('start-up errors', () => {
  test.each([
    {
      variable: 'PORT',
      wrong: ['0', '65536', '-1', '3000.5', 'abc', '0x10', '99999999999999999999'],
    },
    {
      variable: 'BASE_URL',
      wrong: [
        'gw.example',
        'ftp://gw.example',
        'https://例え.example',
        'https://gw.example/"',
        'https://gw.example/?x=1',
        'https://gw.example/#x',
        'https://',
      ],
    },
    { variable: 'HOST', wrong: ['a b', 'http://x'] },
    { variable: 'AUTH_REQUIRED', wrong: ['yes', 'TRUE', '0', 'False'] },
    { variable: 'METRICS_ENABLED', wrong: ['1', 'on'] },
    { variable: 'RATE_LIMIT_ENABLED', wrong: ['no'] },
    { variable: 'LOG_LEVEL', wrong: ['trace', 'INFO', 'verbose'] },
    { variable: 'MAX_BODY_BYTES', wrong: ['0', '1MB'] },
    { variable: 'SHUTDOWN_DELAY_MS', wrong: ['-1', '5s'] },
    {
      variable: 'REDIS_URL',
      wrong: ['http://redis.example', 'redis.example:6379', 'sentinel://a/b', 'redis+sentinel:a/b'],
    },
    { variable: 'MCP_SESSION_TTL_SECONDS', wrong: ['59', '0', 'day'] },
    { variable: 'DCR_CLIENT_TTL', wrong: ['0', '-5', 'x'] },
    { variable: 'OIDC_ISSUER', wrong: ['idp.example', 'file:///etc/passwd', 'javascript:1'] },
    { variable: 'OIDC_JWKS_URL', wrong: ['idp.example/jwks', 'data:,x'] },
    { variable: 'OIDC_CLOCK_TOLERANCE_SECONDS', wrong: ['61', '-1'] },
    { variable: 'OIDC_AUDIENCE', wrong: [',', 'a,,b'] },
    { variable: 'OAUTH_AUTHORIZATION_URL', wrong: ['/authorize', 'ws://idp.example'] },
    { variable: 'OAUTH_TOKEN_URL', wrong: ['token'] },
    { variable: 'OAUTH_REVOCATION_URL', wrong: ['mailto:x'] },
    { variable: 'OAUTH_CLIENT_ID', wrong: ['svc-mine'] },
    { variable: 'OAUTH_CLIENT_AUTH', wrong: ['none', 'POST'] },
    {
      variable: 'ALLOWED_ORIGINS',
      wrong: ['*', 'app.example', 'https://app.example/path', 'null'],
    },
    { variable: 'ALLOWED_HOSTS', wrong: ['https://gw.example', 'gw.example/x', '*'] },
    {
      variable: 'TRUST_PROXY',
      wrong: ['0', '101', 'some', '10.0.0.0/33', '10.0.0.0/8/8', 'all,none', '10.0.0.1,'],
    },
    { variable: 'MCP_RATE_LIMIT_WINDOW_MS', wrong: ['0', '1m'] },
    { variable: 'MCP_RATE_LIMIT_MAX', wrong: ['0', '-1', 'x'] },
    { variable: 'MCP_GLOBAL_RATE_LIMIT_MAX', wrong: ['0'] },
    { variable: 'DCR_RATE_LIMIT_WINDOW_MS', wrong: ['0'] },
    { variable: 'DCR_RATE_LIMIT_MAX', wrong: ['0'] },
    { variable: 'DCR_GLOBAL_RATE_LIMIT_MAX', wrong: ['0'] },
    { variable: 'OAUTH_AUTHORIZE_RATE_LIMIT_WINDOW_MS', wrong: ['0'] },
    { variable: 'OAUTH_AUTHORIZE_RATE_LIMIT_MAX', wrong: ['0'] },
    { variable: 'OAUTH_AUTHORIZE_GLOBAL_RATE_LIMIT_MAX', wrong: ['0'] },
  ])(
    '§10 a wrong $variable is named, with what was given and what is allowed',
    ({ variable, wrong }) => {
      for (const given of wrong) {
        const problems = problemsOf({ OIDC_ISSUER: ISSUER, [variable]: given });
        expect(problems).toHaveLength(1);
        expect(problems[0]).toMatch(new RegExp(`^${variable}: .* is not valid\\..* It must be .+`));
        // The values of a query may be secret.
        const shown = JSON.stringify(given.replace('?x=1', '?x=…').replace('#x', '#…'));
        if (variable !== 'REDIS_URL') expect(problems[0]).toContain(shown);
      }
    },
  );

  test('§10 a missing issuer is an error while authentication is required', () => {
    expect(problemsOf({})).toEqual([expect.stringMatching(/^OIDC_ISSUER is missing/)]);
    expect(problemsOf({ AUTH_REQUIRED: 'false' })).toEqual([]);
  });

  test('§10 all problems are told at once', () => {
    const problems = problemsOf({ PORT: 'x', LOG_LEVEL: 'loud', MCP_SESSION_TTL_SECONDS: '5' });
    expect(problems.map((problem) => problem.split(/[: ]/)[0])).toEqual([
      'PORT',
      'LOG_LEVEL',
      'MCP_SESSION_TTL_SECONDS',
      'OIDC_ISSUER',
    ]);
  });

  test.each([
    { url: 'redis+sentinel://one,two', problem: 'The name of the primary is missing.' },
    { url: 'redis+sentinel://one,two/', problem: 'The name of the primary is missing.' },
    { url: 'redis+sentinel:///main', problem: 'Each sentinel must be host or host:port' },
    { url: 'redis+sentinel://one,,two/main', problem: 'Each sentinel must be' },
    { url: 'redis+sentinel://one:0/main', problem: 'Each sentinel must be' },
    { url: 'redis+sentinel://one:65536/main', problem: 'Each sentinel must be' },
    { url: 'redis+sentinel://2001:db8::1/main', problem: 'brackets around an IPv6 address' },
    { url: 'redis+sentinel://:hunt/er2@one/main', problem: 'must be percent-encoded' },
    { url: 'redis+sentinel://:hunter2,@one/main/x', problem: 'number of a database' },
    { url: 'redis+sentinel://one/main/0/1', problem: 'number of a database' },
    { url: 'redis+sentinel://hunter2@one/main', problem: 'A user needs a password' },
    { url: 'redis+sentinel://:hunter2%@one/main', problem: 'A % in it must be written as %25.' },
    { url: 'redis+sentinel://:hunter2#@one/main', problem: 'contains a space or a #' },
    {
      url: 'redis+sentinel://one/main?cluster=true',
      problem: 'cluster cannot be used with Sentinel',
    },
    {
      url: 'rediss+sentinel://one/main?hunter2=1',
      problem: 'The only parameter is sentinelPassword.',
    },
  ])('§10 REDIS_URL=$url is refused with the reason', ({ url, problem }) => {
    const [first, ...others] = problemsOf({ OIDC_ISSUER: ISSUER, REDIS_URL: url });
    expect(others).toEqual([]);
    expect(first).toMatch(
      /^REDIS_URL: .* \(not shown\) is not valid\. .*It must be .*redis\+sentinel:/,
    );
    expect(first).toContain(problem);
    expect(first).not.toContain('hunt');
  });

  test('§10 the parts of a REDIS_URL for Sentinel are percent-decoded', () => {
    const url =
      'rediss+sentinel://a%40b:c%2Fd+e:f@one.example:5000,[2001:db8::1],10.0.0.1/my%20main/15?sentinelPassword=g%26h+i=j';
    expect(
      problemsOf({ OIDC_ISSUER: ISSUER, REDIS_URL: url, OAUTH_STATE_SECRET: 's'.repeat(32) }),
    ).toEqual([]);
    expect(requireSentinelUrl(url)).toEqual({
      isTls: true,
      username: 'a@b',
      password: 'c/d+e:f',
      sentinels: [
        { host: 'one.example', port: 5000 },
        { host: '2001:db8::1', port: 26_379 },
        { host: '10.0.0.1', port: 26_379 },
      ],
      primaryName: 'my main',
      db: 15,
      sentinelPassword: 'g&h+i=j',
    });
  });

  test('§10 secrets are never printed', () => {
    const problems = problemsOf({
      OIDC_ISSUER: 'https://user:hunter2@idp.example',
      REDIS_URL: 'http://:hunter2@redis.example',
      OAUTH_TOKEN_URL: 'https://user:hunter2@idp.example/token',
    });
    expect(problems).toHaveLength(3);
    expect(problems.join()).not.toContain('hunter2');
  });
});
