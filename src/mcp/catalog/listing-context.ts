import { PACKAGE_NAME, PACKAGE_VERSION } from '../../platform/version.ts';
import type { CallerContext } from './served-catalog.ts';

const failToAsk = (): Promise<never> => Promise.reject(new Error('Nobody can be asked here'));

const NEVER = new AbortController().signal;

/** For lists that nobody in particular asks for: a caller without a user, who cannot be asked. */
export const LISTING_CONTEXT: CallerContext = {
  user: undefined,
  session: undefined,
  clientId: undefined,
  client: { elicitation: false, sampling: false, roots: false },
  service: {
    name: PACKAGE_NAME,
    version: PACKAGE_VERSION,
    displayName: PACKAGE_NAME,
    environment: 'production',
  },
  signal: NEVER,
  progress() {},
  log() {},
  ask: failToAsk,
  relay: {
    era: 'session',
    signal: NEVER,
    wantsProgress: false,
    logLevel: undefined,
    meta: undefined,
    ask: failToAsk,
    completeElicitation() {},
  },
  trace: {},
};
