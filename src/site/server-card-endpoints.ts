// §32: where clients find server cards.
import type { Config } from '../config/config.ts';
import type { Endpoint } from '../endpoint/endpoint.ts';
import { createEtag, createNotModifiedReply, matchesEtag } from '../endpoint/etag.ts';
import { type GatewayRequest, getHeader, type Reply } from '../endpoint/message.ts';
import type { NamedPaths } from '../endpoint/named-paths.ts';
import { JSONRPC } from '../endpoint/render-error.ts';
import { fail } from '../errors/gateway-error.ts';
import { PACKAGE_VERSION } from '../platform/own-files.ts';
import {
  describeAddress,
  renderServerCard,
  renderServerCatalog,
  SERVER_CARD_TYPE,
} from './server-card.ts';

const START = '/mcp/';
const END = '/server-card';

/** As the proposal has it. What is new in a card is read by a client that connects, too. */
const CACHING = { 'Cache-Control': 'public, max-age=3600' } as const;

/** None without `SERVER_CARD=true`. */
export function createServerCardEndpoints(
  config: Pick<Config, 'server' | 'site' | 'serverCard'>,
  paths: NamedPaths,
): readonly Endpoint[] {
  if (!config.serverCard.isServed) return [];
  const gateway = describeAddress(config, PACKAGE_VERSION);
  const shared = { kind: 'open', method: 'GET', errors: JSONRPC, isForAllOrigins: true } as const;
  return [
    // Names of servers and views are told to nobody who does not know them: the catalogue has the gateway alone.
    {
      ...shared,
      path: '/.well-known/mcp/catalog.json',
      handle: (request) => reply(request, renderServerCatalog(gateway), 'application/json'),
    },
    {
      ...shared,
      path: '/mcp/server-card',
      handle: (request) => reply(request, renderServerCard(gateway), SERVER_CARD_TYPE),
    },
    {
      ...shared,
      path: '/mcp/:server/server-card',
      hasParameter: paths.has,
      handle(request) {
        const name = request.path.slice(START.length, -END.length);
        // It may go between the look at the path and here.
        if (!paths.has(name)) fail('not_found');
        const path = { name, title: paths.getTitle(name) };
        const card = renderServerCard(describeAddress(config, PACKAGE_VERSION, path));
        return reply(request, card, SERVER_CARD_TYPE);
      },
    },
  ];
}

function reply(request: GatewayRequest, document: object, type: string): Reply {
  const body = JSON.stringify(document);
  const etag = createEtag(body);
  return matchesEtag(getHeader(request, 'if-none-match'), etag)
    ? createNotModifiedReply(etag, CACHING)
    : { status: 200, headers: { 'Content-Type': type, ...CACHING, ETag: etag }, body };
}
