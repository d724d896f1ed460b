// Every setting, by its group; the settings page and .env.example are generated from these.
import { brokerSettings } from './groups/broker.ts';
import { clientSettings } from './groups/clients.ts';
import { httpSettings } from './groups/http.ts';
import { limitSettings } from './groups/limits.ts';
import { mcpSettings } from './groups/mcp.ts';
import { oauthSettings } from './groups/oauth.ts';
import { outboundSettings } from './groups/outbound.ts';
import { providerSettings } from './groups/provider.ts';
import { serverSettings } from './groups/server.ts';
import { storeSettings } from './groups/store.ts';
import type { Setting } from './setting.ts';

export interface SettingGroup {
  /** The heading in the documentation. */
  readonly title: string;
  readonly settings: readonly Setting<unknown>[];
}

export const SETTING_GROUPS: readonly SettingGroup[] = [
  { title: 'Server', settings: Object.values(serverSettings) },
  { title: 'HTTP', settings: Object.values(httpSettings) },
  { title: 'Store', settings: Object.values(storeSettings) },
  { title: 'MCP sessions and streams', settings: Object.values(mcpSettings) },
  { title: 'OpenID provider', settings: Object.values(providerSettings) },
  { title: 'Login', settings: Object.values(oauthSettings) },
  { title: 'Broker mode', settings: Object.values(brokerSettings) },
  { title: 'OAuth clients', settings: Object.values(clientSettings) },
  { title: 'Outbound network', settings: Object.values(outboundSettings) },
  { title: 'Rate limits', settings: limitSettings },
];

export const SETTINGS: readonly Setting<unknown>[] = SETTING_GROUPS.flatMap(
  ({ settings }) => settings,
);
