// §18.3: a call goes to its server; what its result links to is remembered.
import { fail } from '../../errors/gateway-error.ts';
import type { RawResult } from '../../mcp/catalog/catalog.ts';
import type { CallerContext } from '../../mcp/catalog/served-catalog.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { RelayCall, RelayedRequest } from '../relay/relayed-call.ts';
import { type LinkedResources, listLinkedUris, nameLinkOwner } from './linked-resources.ts';
import type { View, Who } from './view.ts';

export type PassOn = (
  server: string,
  who: Who,
  request: RelayedRequest,
  context: CallerContext,
) => Promise<RawResult>;

/** Of one result. */
const MAX_LINKS = 100;

export function createPassOn(view: View, relayCall: RelayCall, links: LinkedResources): PassOn {
  /** Most results link to nothing, and nothing is waited for. */
  function keepLinks(server: string, result: RawResult, who: Who, context: CallerContext) {
    const uris = listLinkedUris(result);
    return uris.length === 0
      ? result
      : rememberLinks(server, uris, who, context).then(() => result);
  }

  async function rememberLinks(
    server: string,
    uris: readonly string[],
    who: Who,
    context: CallerContext,
  ): Promise<void> {
    const unlisted: string[] = [];
    for (const uri of uris.slice(0, MAX_LINKS)) {
      if ((await view.findListed(uri, who, context)) === undefined) unlisted.push(uri);
    }
    await links.remember(nameLinkOwner(who.upstream, view.path), server, unlisted);
  }

  return function passOn(server, who, request, context) {
    const { use } = view.findServer(server) ?? failGone(server);
    const { meta } = context.relay;
    const passed = meta === undefined ? request : addMeta(request, meta);
    return use((upstream) => relayCall(upstream, who.upstream, passed, context)).then((result) =>
      keepLinks(server, result, who, context),
    );
  };
}

const addMeta = (request: RelayedRequest, meta: JsonObject): RelayedRequest => ({
  ...request,
  params: { ...request.params, _meta: meta },
});

/** The configuration has changed since it was found. */
const failGone = (server: string): never =>
  fail('upstream_error', { jsonRpc: { code: -32603, message: `${server} is no longer there.` } });
