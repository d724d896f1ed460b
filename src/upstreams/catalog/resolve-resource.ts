// §18.2: which server a URI is for: who linked to it, who lists it, or whose template fits it.
import type { CallerContext } from '../../mcp/catalog/served-catalog.ts';
import { BUILT_IN } from './entry.ts';
import { type LinkedResources, nameLinkOwner } from './linked-resources.ts';
import type { FoundResource, View, Who } from './view.ts';

export type ResolveResource = (
  uri: string,
  who: Who,
  context: CallerContext | undefined,
) => Promise<FoundResource | undefined>;

export function createResolveResource(
  view: View,
  joined: View,
  links: LinkedResources,
): ResolveResource {
  /**
   * What a client was given by a server is for that server alone: it may hold a secret. Nobody was given by a link what
   * another server listed then.
   */
  return async function resolveResource(uri, who, context) {
    const listed = await view.findListed(uri, who, context);
    if (listed?.server === BUILT_IN) return listed;
    const linker = await findLinker(uri, who, listed);
    if (linker === undefined) return listed ?? view.findResource(uri, who, context);
    return view.findServer(linker) === undefined ? listed : toLinked(uri, linker, who, context);
  };

  /** Where the store cannot say, what is listed can be read all the same. */
  async function findLinker(uri: string, who: Who, listed: FoundResource | undefined) {
    try {
      return await links.find(nameLinkOwner(who.upstream, view.path), uri);
    } catch (error) {
      if (listed === undefined) throw error;
      return undefined;
    }
  }

  async function toLinked(
    uri: string,
    server: string,
    who: Who,
    context: CallerContext | undefined,
  ): Promise<FoundResource> {
    // What another server lists at /mcp is not this server's: the rules about it are about the other.
    const other = view === joined ? undefined : await joined.findListed(uri, who, context);
    const isOther = other !== undefined && other.server !== server;
    return { server, ownUri: uri, uri: isOther ? `${server}+${uri}` : uri, annotations: {} };
  }
}
