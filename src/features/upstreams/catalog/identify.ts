import type { Caller } from '../../mcp/catalog/catalog.ts';
import type { ClientOf } from '../../rules/client-of.ts';
import type { Who } from './view.ts';

export type Identify = (caller: Caller) => Who | Promise<Who>;

export const createIdentify =
  (clientOf: ClientOf): Identify =>
  (caller) => {
    const clientId = clientOf(caller);
    return clientId instanceof Promise
      ? clientId.then((known) => toWho(caller, known))
      : toWho(caller, clientId);
  };

const toWho = (
  { user, session, client: capabilities }: Caller,
  clientId: string | undefined,
): Who => ({
  upstream: { user, clientId, sessionId: session?.sessionId, capabilities },
  rule: { user, clientId },
});
