// Who gets in by an assertion (ID-JAG), what log and audit say of it, how it is counted, and which settings make no sense.
import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { useAuditLog } from '../../support/gateway/audit-log.ts';
import { useFresh } from '../../support/lifetimes.ts';
import {
  assertUser,
  bringAssertion,
  type Change,
  ID_JAG_ENV,
  JWT_BEARER,
} from '../../support/oauth/id-jag.ts';
import { basic, fileOf, SECRET, withSecret } from '../../support/oauth/machine-clients.ts';
import { startOwnTokens } from '../../support/oauth/own-tokens.ts';
