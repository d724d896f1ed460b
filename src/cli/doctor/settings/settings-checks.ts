// What is checked of the settings at hand, before any client comes.
import type { Check } from '../finding.ts';
import { checkAuthorization, checkProxyRedirects } from './check-authorization.ts';
import { checkCapabilities } from './check-capabilities.ts';
import { checkClient } from './check-client.ts';
import { checkClock } from './check-clock.ts';
import { checkConfiguredClients } from './check-configured-clients.ts';
import { checkDiscovery, checkKeySet } from './check-discovery.ts';
import { checkDocuments } from './check-documents.ts';
import { checkLimits } from './check-limits.ts';
import { checkServers } from './check-servers.ts';
import { checkStart } from './check-start.ts';
import { checkStore } from './check-store.ts';
import { checkToken } from './check-token.ts';
import type { SettingsAtHand } from './settings-at-hand.ts';

export const SETTINGS_CHECKS: readonly Check<SettingsAtHand>[] = [
  { section: 'Settings', run: checkStart },
  { section: 'Settings', run: checkLimits },
  { section: 'Identity provider', run: checkDiscovery },
  { section: 'Identity provider', run: checkKeySet },
  { section: 'Identity provider', run: checkClock },
  { section: 'Identity provider', run: checkCapabilities },
  { section: "The gateway's client at the provider", run: checkClient },
  { section: "The gateway's client at the provider", run: checkAuthorization },
  { section: "The gateway's client at the provider", run: checkProxyRedirects },
  { section: 'Client documents', run: checkDocuments },
  { section: 'Token', run: checkToken },
  { section: 'Servers behind the gateway', run: checkServers },
];

/** Where no gateway runs that could be asked. */
export const ABSENT_GATEWAY_CHECKS: readonly Check<SettingsAtHand>[] = [
  { section: 'Clients', run: checkConfiguredClients },
];

/** After the running gateway was asked, which leaves a login under way in the store. */
export const STORE_CHECKS: readonly Check<SettingsAtHand>[] = [
  { section: 'Store', run: checkStore },
];
