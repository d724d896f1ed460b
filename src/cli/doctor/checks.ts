// What is checked, in this order. Of a running gateway it is that in which a client meets it.

import { createDocumentOffer } from '../../logins/client-id-metadata/document-offer.ts';
import { isObject } from '../../platform/json.ts';
import { createPublicNetwork } from '../../platform/outbound/public-network.ts';
import { type Check, type Found, ok, warning } from './finding.ts';
import { createCollectingLog } from './instruments.ts';
import { checkClient, checkClientSecret } from './provider/client-secret.ts';
import { checkClock, checkWalkClock } from './provider/clock.ts';
import { checkApprovals } from './settings/check-approvals.ts';
import { checkAuthorization, checkProxyRedirects } from './settings/check-authorization.ts';
import { checkCapabilities, checkDiscovery, checkKeySet } from './settings/check-discovery.ts';
import { checkGuards } from './settings/check-guards.ts';
import { checkLoginPolicy } from './settings/check-login-policy.ts';
import { checkMachineClients } from './settings/check-machine-clients.ts';
import { checkLoginAbilities, checkTokenKind } from './settings/check-own-tokens.ts';
import { checkProviderLogout } from './settings/check-provider-logout.ts';
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

const inSection = <Subject>(section: string, ...runs: readonly Check<Subject>['run'][]) =>
  runs.map((run): Check<Subject> => ({ section, run }));

/** Without it nothing else can be found out. */
export const REACH: Check<Walk> = { section: 'Gateway', run: checkReach };

/** Whether it is ready, and calls itself by the address that was asked. */
export const ENTRY_CHECKS = inSection<Walk>('Gateway', checkHealth, checkChallenge);

/** What clients read of the gateway before they log in. It counts in no limit that a login meets. */
export const READING_CHECKS: readonly Check<Walk>[] = [
  ...inSection<Walk>('Metadata', checkResourceMetadata, checkServerMetadata),
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

export const SETTINGS_CHECKS: readonly Check<SettingsAtHand>[] = [
  ...inSection('Settings', checkStart, checkLimits, checkTokenKind, checkLoginPolicy),
  ...inSection(
    'Identity provider',
    checkDiscovery,
    checkKeySet,
    checkClock,
    checkCapabilities,
    checkLoginAbilities,
    checkProviderLogout,
  ),
  ...inSection(
    "The gateway's client at the provider",
    checkClient,
    checkAuthorization,
    checkProxyRedirects,
  ),
  ...inSection('Client documents', checkDocuments),
  ...inSection('Machine clients', checkMachineClients),
  ...inSection('Approvals', checkApprovals),
  ...inSection('Token', checkToken),
  ...inSection('Servers behind the gateway', checkServers),
  ...inSection('Guards', checkGuards),
];

/** After the running gateway was asked, which leaves a login under way in the store. */
export const STORE_CHECK: Check<SettingsAtHand> = { section: 'Store', run: checkStore };

const CHECK = 'client-documents';

/** Whether metadata documents of clients can be fetched, tried as the gateway tries it. */
async function checkDocuments({
  config: { oauth },
  clock,
  tunnel,
}: SettingsAtHand): Promise<Found> {
  const { allowedHosts } = oauth.clientIdMetadata;
  if (allowedHosts.length === 0)
    return ok(CHECK, 'Client ID metadata documents are switched off: clients register instead.');
  const { log, entries } = createCollectingLog();
  const network = createPublicNetwork({ clock, tunnel });
  const offer = createDocumentOffer({ clock, log }, network, allowedHosts);
  offer.start();
  const isOffered = await offer.isOffered();
  offer.close();
  if (isOffered)
    return ok(CHECK, `Client ID metadata documents can be fetched (${allowedHosts.join(', ')}).`);
  const reasons = entries.map(({ facts }) => facts.reasons).find(isObject) ?? {};
  const [host, reason] = Object.entries(reasons)[0] ?? [];
  return warning(CHECK, {
    what: `None of the hosts in CIMD_ALLOWED_HOSTS can be reached, so clients register instead.`,
    ...(host !== undefined && { why: `${host}: ${String(reason)}` }),
    setting: 'CIMD_ALLOWED_HOSTS',
    remedy:
      'let the gateway reach them on port 443, set HTTPS_PROXY=http://host:port if only a proxy leads out, or set CIMD_ALLOWED_HOSTS=none.',
  });
}
