import type { Config } from './config.ts';
import { findProblems } from './find-problems.ts';
import { adminSettings } from './groups/admin.ts';
import { auditSettings } from './groups/audit.ts';
import { httpSettings } from './groups/http.ts';
import { readLimitsConfig } from './groups/limits.ts';
import { readMcpConfig } from './groups/mcp.ts';
import { readOAuthConfig } from './groups/oauth.ts';
import { mode } from './groups/oauth-mode.ts';
import { outboundSettings } from './groups/outbound.ts';
import { readAuthConfig, readProviderConfig } from './groups/provider.ts';
import { readServerConfig, serverSettings } from './groups/server.ts';
import { readSiteConfig } from './groups/site.ts';
import { readStoreConfig } from './groups/store.ts';
import { readTracingConfig } from './groups/tracing.ts';
import { upstreamSettings } from './groups/upstreams.ts';
import { describeMisspelled, findMisspelledVariables } from './misspelled.ts';
import { ConfigError, formatProblem } from './problem.ts';
import { createReader, type Env, findVariable, readAll } from './setting.ts';

/**
 * Reads the settings from environment variables; an empty one counts as unset, as compose files pass them.
 *
 * @throws ConfigError with every problem at once.
 */
export function loadConfig(env: Env): Config {
  const read = createReader(env);
  const problems = findProblems(read, env);
  if (problems.length > 0) {
    // The one that was misspelled may be the one that is missing.
    throw new ConfigError([
      ...problems.map(formatProblem),
      ...findMisspelledVariables(env).map(describeMisspelled),
    ]);
  }
  const store = readStoreConfig(read);
  const provider = readProviderConfig(read);
  return freezeDeep({
    server: readServerConfig(read, findVariable(serverSettings.baseUrl, env) !== undefined),
    http: readAll(httpSettings, read),
    store,
    mcp: readMcpConfig(read),
    auth: readAuthConfig(read, provider),
    oauth: readOAuthConfig(read, {
      provider,
      store,
      isModeSet: findVariable(mode, env) !== undefined,
    }),
    limits: readLimitsConfig(read),
    outbound: readAll(outboundSettings, read),
    upstreams: readAll(upstreamSettings, read),
    site: readSiteConfig(read),
    admin: readAll(adminSettings, read),
    audit: readAll(auditSettings, read),
    tracing: readTracingConfig(read),
  });
}

function freezeDeep<T>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    for (const member of Object.values(value)) freezeDeep(member);
    Object.freeze(value);
  }
  return value;
}
