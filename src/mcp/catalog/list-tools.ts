import type { JsonObject } from '../../platform/json.ts';
import { PACKAGE_NAME, PACKAGE_VERSION } from '../../platform/own-files.ts';
import type { Cursor } from './catalog.ts';
import type { CallerContext, ServedCatalog } from './served-catalog.ts';

/** As a caller without a user gets them: rules about groups, claims and clients allow nothing. */
export async function listTools({ offers, list }: ServedCatalog): Promise<readonly JsonObject[]> {
  if (!offers.tools) return [];
  const tools: JsonObject[] = [];
  let cursor: Cursor;
  do {
    const page = await list('tools', cursor, LISTING_CONTEXT);
    tools.push(...page.items.map((item) => ({ ...item })));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return tools;
}

const failToAsk = (): Promise<never> => Promise.reject(new Error('Nobody can be asked here'));

const NEVER = new AbortController().signal;

/** For lists that nobody in particular asks for: a caller without a user, who cannot be asked. */
export const LISTING_CONTEXT: CallerContext = {
  user: undefined,
  session: undefined,
  clientId: undefined,
  view: undefined,
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
  disconnect() {},
  providerToken: async () => undefined,
  relay: {
    era: 'session',
    signal: NEVER,
    wantsProgress: false,
    logLevel: undefined,
    meta: undefined,
    questionGuards: undefined,
    ask: failToAsk,
    completeElicitation: () => false,
  },
  trace: {},
};
