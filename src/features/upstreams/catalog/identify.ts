import type { Caller } from '../../mcp/catalog/catalog.ts';
import type { Who } from './view.ts';

export type Identify = (caller: Caller) => Promise<Who>;

/** OAuth client ID of the caller; undefined where it is not known. */
export type ClientOf = (caller: Caller) => string | undefined | Promise<string | undefined>;

export const createIdentify =
  (clientOf: ClientOf): Identify =>
  async (caller) => {
    const { user, session, client: capabilities } = caller;
    const clientId = await clientOf(caller);
    return {
      upstream: { user, clientId, sessionId: session?.sessionId, capabilities },
      rule: { user, clientId },
    };
  };
