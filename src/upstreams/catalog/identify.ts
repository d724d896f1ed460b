import type { IdentifiedCaller } from '../../mcp/catalog/served-catalog.ts';
import type { Who } from './view.ts';

export const toWho = ({
  user,
  session,
  client: capabilities,
  clientId,
}: IdentifiedCaller): Who => ({
  upstream: { user, clientId, sessionId: session?.sessionId, capabilities },
  policy: { user, clientId },
});
