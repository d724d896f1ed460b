import type { Config } from './config.ts';
import { describeMisspelt, misspeltVariables } from './misspelt.ts';
import { oauthProblems } from './oauth-settings.ts';
import { providerProblems } from './provider-problems.ts';
import { proxyProblems } from './proxy-settings.ts';
import type { Setting } from './setting.ts';
import { settings } from './settings.ts';

/** All that is wrong with the settings, one sentence each. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.problems = problems;
  }
}

/**
 * Reads the settings from environment variables; an empty one counts as unset, as compose files pass them.
 *
 * @throws ConfigError with every problem at once.
 */
export function loadConfig(env: Readonly<Record<string, string | undefined>>): Config {
  const problems: string[] = [];
  const config: Record<string, unknown> = {};
  for (const [name, setting] of Object.entries(settings) as [string, Setting<unknown>][]) {
    const variable = [setting.variable, setting.alias ?? ''].find((one) => env[one]);
    const given = variable === undefined ? '' : (env[variable] ?? '');
    config[name] =
      variable === undefined
        ? setting.fallback(config as unknown as Config)
        : (setting.rule.parse(given) ?? reject({ ...setting, variable }, given, problems, config));
  }
  config.baseUrlIsSet = Boolean(env[settings.baseUrl.variable]);
  const loaded = config as unknown as Config;
  // An AUTH_REQUIRED that cannot be read would make this a second, misleading complaint.
  if (loaded.authRequired && loaded.oidcIssuer === undefined && !env.OIDC_ISSUER) {
    problems.push(
      'OIDC_ISSUER is missing: set it to the issuer URL of your OpenID provider' +
        ' (or AUTH_REQUIRED=false for local development). To try it without a provider: postern dev',
    );
  }
  problems.push(
    ...baseUrlProblems(loaded),
    ...oauthProblems(loaded, env),
    ...providerProblems(loaded),
    ...proxyProblems(loaded),
  );
  if (problems.length > 0) {
    // The one that was misspelt may be the one that is missing.
    throw new ConfigError([...problems, ...misspeltVariables(env).map(describeMisspelt)]);
  }
  return Object.freeze(loaded);
}

/** The endpoint is BASE_URL/mcp: the one word would be there twice. */
function baseUrlProblems({ baseUrl }: Config): readonly string[] {
  const right = baseUrl.replace(/([^/])(\/mcp)+$/, '$1');
  if (right === baseUrl) return [];
  return [
    `BASE_URL: ${JSON.stringify(baseUrl)} ends in /mcp, which is added to it; set BASE_URL=${right} (clients then connect to ${right}/mcp).`,
  ];
}

/** Notes the problem and goes on with the default, so that all problems are found at once. */
function reject(
  { variable, rule, secret, fallback }: Setting<unknown>,
  given: string,
  problems: string[],
  above: Record<string, unknown>,
): unknown {
  // A URL with user info may hold a password, too.
  const hidden = secret || given.includes('@');
  const shown = hidden ? 'the value given (not shown)' : JSON.stringify(given);
  problems.push(`${variable}: ${shown} is not allowed; allowed is ${rule.allowed}.`);
  return fallback(above as unknown as Config);
}
