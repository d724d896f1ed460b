// §24.3: `<server>__connect`: the tool by which a user logs in at a server whose own tools are not shown before. The name is
// reserved: it can be called afterwards, too, and a tool of the server that is called so is hidden.
import type { RawItem } from '../mcp/catalog/catalog.ts';

/** Its own name, as at `/mcp/<server>`. */
export const CONNECT = 'connect';

export const createConnectTool = (server: string): RawItem => ({
  name: CONNECT,
  title: `Connect ${server}`,
  description: `Connects the user's account at ${server}: they log in there, in a browser. ${server} shows its tools afterwards. Call this when the user wants something of ${server}.`,
  inputSchema: { type: 'object', properties: {}, additionalProperties: false },
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true },
});

/** Why a server's own tool is not there: the rest of a sentence that begins with its name. */
export const HIDDEN_BY_CONNECT =
  'is hidden: the name is reserved for the tool by which users log in at the server';
