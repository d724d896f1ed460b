// Parses the settings into a Config. Mutually exclusive settings form a union, so that invalid combinations cannot be expressed.

import { clientSettings } from './groups/clients.ts';
import { httpSettings, mcpSettings, outboundSettings, readMcpConfig } from './groups/http.ts';
import { limitSettings, readLimitsConfig } from './groups/limits.ts';
import { loginSettings, readOAuthConfig } from './groups/oauth.ts';
import { brokerSettings, loginPolicySettings, ownTokenSettings } from './groups/own-tokens.ts';
import {
  idJagSettings,
  mode,
  providerClientSettings,
  providerSettings,
  readAuthConfig,
  readProviderConfig,
} from './groups/provider.ts';
import {
  adminSettings,
  readServerConfig,
  readSiteConfig,
  serverCardSettings,
  serverSettings,
  siteSettings,
  upstreamSettings,
} from './groups/server.ts';
import { readStoreConfig, storeSettings } from './groups/store.ts';
import { auditSettings, readTracingConfig, tracingSettings } from './groups/telemetry.ts';
import { type Env, findVariable, type Read, readAll, type Setting } from './setting.ts';

/** All settings, read once at startup and frozen. Members whose name lacks a unit document it. */
export type Config = Readonly<ReturnType<typeof readConfig>>;

/** To be used only if there are no problems with the settings. */
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

// All settings by group; the settings page and .env.example are generated from this table.

export interface SettingGroup {
  /** The heading in the documentation. */
  readonly title: string;
  readonly settings: readonly Setting<unknown>[];
}

export const SETTING_GROUPS: readonly SettingGroup[] = Object.entries({
  Server: serverSettings,
  Requests: httpSettings,
  Store: storeSettings,
  'Sessions and calls': mcpSettings,
  'MCP servers behind the gateway': upstreamSettings,
  'OpenID provider': providerSettings,
  'Client at the provider': providerClientSettings,
  Login: loginSettings,
  'Broker mode': brokerSettings,
  Tokens: ownTokenSettings,
  'Who may log in': loginPolicySettings,
  Enterprises: idJagSettings,
  'MCP clients': clientSettings,
  Pages: siteSettings,
  'Server card': serverCardSettings,
  "Operators' page": adminSettings,
  'Outbound network': outboundSettings,
  'Rate limits': limitSettings,
  'Audit log': auditSettings,
  Traces: tracingSettings,
}).map(([title, settings]) => ({ title, settings: Object.values(settings) }));

export const SETTINGS: readonly Setting<unknown>[] = SETTING_GROUPS.flatMap(
  ({ settings }) => settings,
);
