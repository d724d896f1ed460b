// What is checked of a running gateway, in the order in which a client meets it.

import { checkClients } from '../clients/check-clients.ts';
import type { Check } from '../finding.ts';
import { checkChallenge } from './check-challenge.ts';
import { checkClientSecret } from './check-client-secret.ts';
import { checkWalkClock } from './check-clock.ts';
import { checkCors } from './check-cors.ts';
import { checkHealth } from './check-health.ts';
import { checkLogin, checkProviderLogin } from './check-login.ts';
import { checkReach } from './check-reach.ts';
import { checkRegistration } from './check-registration.ts';
import { checkResourceMetadata } from './check-resource-metadata.ts';
import { checkServerMetadata } from './check-server-metadata.ts';
import { checkWalkToken } from './check-token.ts';
import type { Walk } from './walk.ts';

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

/** What stands behind it, which can be asked more closely where its settings are at hand. */
export const BACKGROUND_CHECKS: readonly Check<Walk>[] = [
  { section: 'Login', needsStore: LOGIN, run: checkProviderLogin },
  { section: 'Login', needsStore: LOGIN, run: checkClientSecret },
  { section: 'Login', run: checkWalkClock },
  TOKEN_CHECK,
];

export const CLIENT_CHECKS: readonly Check<Walk>[] = [{ section: 'Clients', run: checkClients }];
