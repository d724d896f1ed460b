import { PACKAGE_NAME, PACKAGE_VERSION } from '../../core/version.ts';
import type { Context } from '../../features/mcp/catalog/catalog.ts';

const failToAsk = (): Promise<never> => Promise.reject(new Error('Nobody can be asked here'));

/** Of nobody in particular: lists are the same for everybody until rules are asked. */
export const LISTING_CONTEXT: Context = {
  user: undefined,
  session: undefined,
  client: { elicitation: false, sampling: false, roots: false },
  service: {
    name: PACKAGE_NAME,
    version: PACKAGE_VERSION,
    displayName: PACKAGE_NAME,
    environment: 'production',
  },
  signal: new AbortController().signal,
  progress() {},
  log() {},
  ask: failToAsk,
  relay: { era: 'session', wantsProgress: false, logLevel: undefined, ask: failToAsk },
  trace: {},
};
