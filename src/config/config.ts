// The settings, parsed: what excludes each other is a union, so that it cannot be written.

import { httpSettings, outboundSettings, readMcpConfig } from './groups/http.ts';
import { readLimitsConfig } from './groups/limits.ts';
import { readOAuthConfig } from './groups/oauth.ts';
import { mode, readAuthConfig, readProviderConfig } from './groups/provider.ts';
import {
  adminSettings,
  readServerConfig,
  readSiteConfig,
  serverCardSettings,
  serverSettings,
  upstreamSettings,
} from './groups/server.ts';
import { readStoreConfig } from './groups/store.ts';
import { auditSettings, readTracingConfig } from './groups/telemetry.ts';
import { type Env, findVariable, type Read, readAll } from './setting.ts';

/** Every setting, read once at start and frozen. Where a unit is not in the name it is said there. */
export type Config = Readonly<ReturnType<typeof readConfig>>;

/** For settings in which there is no problem. */
export function readConfig(read: Read, env: Env) {
  const store = readStoreConfig(read);
  const provider = readProviderConfig(read);
  return {
    server: readServerConfig(read, findVariable(serverSettings.baseUrl, env) !== undefined),
    http: readAll(httpSettings, read),
    store,
    mcp: readMcpConfig(read),
    auth: readAuthConfig(read, provider),
    oauth: readOAuthConfig(read, provider, store, findVariable(mode, env) !== undefined),
    limits: readLimitsConfig(read),
    outbound: readAll(outboundSettings, read),
    upstreams: readAll(upstreamSettings, read),
    site: readSiteConfig(read),
    serverCard: readAll(serverCardSettings, read),
    admin: readAll(adminSettings, read),
    audit: readAll(auditSettings, read),
    tracing: readTracingConfig(read),
  };
}
