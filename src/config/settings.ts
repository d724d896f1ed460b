// Every setting, by its group; the settings page and .env.example are generated from these.

import { clientSettings } from './groups/clients.ts';
import { httpSettings, mcpSettings, outboundSettings } from './groups/http.ts';
import { limitSettings } from './groups/limits.ts';
import { loginSettings } from './groups/oauth.ts';
import { brokerSettings, loginPolicySettings, ownTokenSettings } from './groups/own-tokens.ts';
import { idJagSettings, providerClientSettings, providerSettings } from './groups/provider.ts';
import {
  adminSettings,
  serverCardSettings,
  serverSettings,
  siteSettings,
  upstreamSettings,
} from './groups/server.ts';
import { storeSettings } from './groups/store.ts';
import { auditSettings, tracingSettings } from './groups/telemetry.ts';
import type { Setting } from './setting.ts';

export interface SettingGroup {
  /** The heading in the documentation. */
  readonly title: string;
  readonly settings: readonly Setting<unknown>[];
}

export const SETTING_GROUPS: readonly SettingGroup[] = [
  { title: 'Server', settings: Object.values(serverSettings) },
  { title: 'Requests', settings: Object.values(httpSettings) },
  { title: 'Store', settings: Object.values(storeSettings) },
  { title: 'Sessions and calls', settings: Object.values(mcpSettings) },
  { title: 'MCP servers behind the gateway', settings: Object.values(upstreamSettings) },
  { title: 'OpenID provider', settings: Object.values(providerSettings) },
  { title: 'Client at the provider', settings: Object.values(providerClientSettings) },
  { title: 'Login', settings: Object.values(loginSettings) },
  { title: 'Broker mode', settings: Object.values(brokerSettings) },
  { title: 'Tokens', settings: Object.values(ownTokenSettings) },
  { title: 'Who may log in', settings: Object.values(loginPolicySettings) },
  { title: 'Enterprises', settings: Object.values(idJagSettings) },
  { title: 'MCP clients', settings: Object.values(clientSettings) },
  { title: 'Pages', settings: Object.values(siteSettings) },
  { title: 'Server card', settings: Object.values(serverCardSettings) },
  { title: "Operators' page", settings: Object.values(adminSettings) },
  { title: 'Outbound network', settings: Object.values(outboundSettings) },
  { title: 'Rate limits', settings: limitSettings },
  { title: 'Audit log', settings: Object.values(auditSettings) },
  { title: 'Traces', settings: Object.values(tracingSettings) },
];

export const SETTINGS: readonly Setting<unknown>[] = SETTING_GROUPS.flatMap(
  ({ settings }) => settings,
);
