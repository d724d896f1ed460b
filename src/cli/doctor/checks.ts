// What is checked, in this order. Of a running gateway it is that in which a client meets it.
import { checkClients, checkConfiguredClients } from './clients/check-clients.ts';
import type { Check } from './finding.ts';
import { checkClient, checkClientSecret } from './provider/client-secret.ts';
import { checkClock, checkWalkClock } from './provider/clock.ts';
import { checkAuthorization, checkProxyRedirects } from './settings/check-authorization.ts';
import { checkCapabilities, checkDiscovery, checkKeySet } from './settings/check-discovery.ts';
import { checkDocuments } from './settings/check-documents.ts';
import { checkServers } from './settings/check-servers.ts';
import { checkLimits, checkStart } from './settings/check-start.ts';
import { checkStore } from './settings/check-store.ts';
import type { SettingsAtHand } from './settings/settings-at-hand.ts';
import { checkToken, checkWalkToken } from './token/check-token.ts';
import { checkCors } from './walk/check-cors.ts';
import { checkChallenge, checkHealth } from './walk/check-entry.ts';
import { checkLogin, checkProviderLogin, checkRegistration } from './walk/check-login.ts';
import { checkResourceMetadata, checkServerMetadata } from './walk/check-metadata.ts';
import { checkReach } from './walk/check-reach.ts';
import type { Walk } from './walk/walk.ts';

/** Without it nothing else can be found out. */
export const REACH: Check<Walk> = { section: 'Gateway', run: checkReach };

/** Whether it is ready, and calls itself by the address that was asked. */
export const ENTRY_CHECKS: readonly Check<Walk>[] = [
  { section: 'Gateway', run: checkHealth },
  { section: 'Gateway', run: checkChallenge },
];

/** What clients read of the gateway before they log in. It counts in no limit that a login meets. */
export const READING_CHECKS: readonly Check<Walk>[] = [
  { section: 'Metadata', run: checkResourceMetadata },
  { section: 'Metadata', run: checkServerMetadata },
  { section: 'Browser clients', run: checkCors },
];

const LOGIN = 'whether users can log in';

/** What clients need of the gateway itself. */
export const GATEWAY_CHECKS: readonly Check<Walk>[] = [
  ...READING_CHECKS,
  { section: 'Registration', needsStore: 'whether clients can register', run: checkRegistration },
  { section: 'Login', needsStore: LOGIN, run: checkLogin },
];

export const TOKEN_CHECK: Check<Walk> = {
  section: 'Token',
  needsStore: 'whether a token is accepted',
  run: checkWalkToken,
};

/** What stands behind the gateway. Where the settings are at hand, SETTINGS_CHECKS look at it more closely. */
export const BACKGROUND_CHECKS: readonly Check<Walk>[] = [
  { section: 'Login', needsStore: LOGIN, run: checkProviderLogin },
  { section: 'Login', needsStore: LOGIN, run: checkClientSecret },
  { section: 'Login', run: checkWalkClock },
  TOKEN_CHECK,
];

export const CLIENT_CHECKS: readonly Check<Walk>[] = [{ section: 'Clients', run: checkClients }];

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
