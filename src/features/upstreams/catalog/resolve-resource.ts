// §18.2: which server a URI is for: who lists it, whose template fits it, or who linked to it in this session.
import type { Context } from '../../mcp/catalog/catalog.ts';
import type { LinkedResources } from './linked-resources.ts';
import type { FoundResource, View, Who } from './view.ts';

export type ResolveResource = (
  uri: string,
  who: Who,
  context: Context | undefined,
) => Promise<FoundResource | undefined>;

export function createResolveResource(
  view: View,
  joined: View,
  links: LinkedResources,
): ResolveResource {
  return async function resolveResource(uri, who, context) {
    const found = await view.findResource(uri, who, context);
    if (found) return found;
    const { sessionId } = who.upstream;
    const name = sessionId === undefined ? undefined : await links.find(sessionId, uri);
    if (name === undefined || view.findServer(name) === undefined) return undefined;
    // What /mcp sends elsewhere is not this server's: the rules about it are about the other.
    const other = view === joined ? undefined : await joined.findResource(uri, who, context);
    return other && other.server !== name
      ? { server: name, ownUri: uri, uri: `${name}+${uri}`, annotations: {} }
      : { server: name, ownUri: uri, uri, annotations: {} };
  };
}
