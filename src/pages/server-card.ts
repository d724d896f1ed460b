// §32: how the gateway describes itself before a client connects: server cards, their catalogue, and the entry for registries.
// All of it is public: no tools, no names of servers.

import type { Config } from '../config/config.ts';
import { fail } from '../errors/gateway-error.ts';
import type { Endpoint, NamedPaths } from '../http/endpoint/endpoint.ts';
import {
  createEtag,
  createNotModifiedReply,
  type GatewayRequest,
  getHeader,
  matchesEtag,
  type Reply,
} from '../http/endpoint/message.ts';
import { SUPPORTED_VERSIONS } from '../mcp/protocol/revisions.ts';
import { PACKAGE_VERSION } from '../platform/own-files.ts';
import { shorten } from '../platform/text.ts';
import { locateLogo, OPEN } from './open-site.ts';

/** `/mcp/<name>`, and its title; undefined for `/mcp`. */
export interface NamedPath {
  readonly name: string;
  readonly title: string | undefined;
}

type DescribedAddress = ReturnType<typeof describeAddress>;

/** Maximum length in characters: 100 in the schemas of both documents, minus one for the ellipsis. */
const MAX_TITLE = 99;

/** One URL of the gateway. */
export function describeAddress(
  { server, site, serverCard }: Pick<Config, 'server' | 'site' | 'serverCard'>,
  version: string,
  path?: NamedPath,
) {
  const { baseUrl, displayName } = server;
  const { name, description } = serverCard;
  return {
    // Names of servers and views have no dot, so two of them never become the same.
    name: path === undefined ? name : `${name}.${path.name}`,
    title: shorten(
      path === undefined ? displayName : (path.title ?? `${displayName}: ${path.name}`),
      MAX_TITLE,
    ),
    description,
    version,
    websiteUrl: `${baseUrl}/`,
    iconUrl: site.logo && locateLogo(site.logo, baseUrl),
    /** The URL that clients connect to. */
    url: path === undefined ? `${baseUrl}/mcp` : `${baseUrl}/mcp/${path.name}`,
  };
}

/** SEP-2127. The proposal is not final: these members follow its schema v2. */
const SERVER_CARD_TYPE = 'application/mcp-server-card+json';

const SERVER_CARD_SCHEMA =
  'https://static.modelcontextprotocol.io/schemas/v2/server-card.schema.json';

const renderServerCard = (described: DescribedAddress): object => ({
  $schema: SERVER_CARD_SCHEMA,
  ...renderIdentity(described),
  ...(described.iconUrl !== undefined && { icons: [{ src: described.iconUrl }] }),
  remotes: [
    { type: 'streamable-http', url: described.url, supportedProtocolVersions: SUPPORTED_VERSIONS },
  ],
});

const renderIdentity = ({ name, title, description, version, websiteUrl }: DescribedAddress) => ({
  name,
  title,
  description,
  version,
  websiteUrl,
});

/** The catalogue of the domain, through which clients find the rest. */
function renderServerCatalog({ name, title, url }: DescribedAddress): object {
  const [namespace = '', suffix = ''] = name.split('/');
  return {
    specVersion: 'draft',
    entries: [
      {
        // `com.example/tools` is `urn:air:example.com:tools`.
        identifier: `urn:air:${namespace.split('.').reverse().join('.')}:${suffix}`,
        displayName: title,
        type: SERVER_CARD_TYPE,
        url: `${url}/server-card`,
      },
    ],
  };
}

const REGISTRY_SCHEMA =
  'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json';
const MAX_REGISTRY_ICON_URL = 255;

/** `server.json`, in the format that registries use for remote servers. */
export function renderServerJson(described: DescribedAddress): object {
  const { iconUrl, url } = described;
  return {
    $schema: REGISTRY_SCHEMA,
    ...renderIdentity(described),
    // Invalid ones would get the whole document rejected.
    ...(iconUrl?.startsWith('https://') &&
      iconUrl.length <= MAX_REGISTRY_ICON_URL && { icons: [{ src: iconUrl }] }),
    remotes: [{ type: 'streamable-http', url }],
  };
}

// Endpoints of the cards.

const START = '/mcp/';
const END = '/server-card';

/** As in the proposal. A cached card may be stale: clients get the same facts again when they connect. */
const CACHING = { 'Cache-Control': 'public, max-age=3600' } as const;

const OPEN_TO_ALL = { ...OPEN, isForAllOrigins: true } as const;

/** None without `SERVER_CARD=true`. */
export function createServerCardEndpoints(
  config: Pick<Config, 'server' | 'site' | 'serverCard'>,
  paths: NamedPaths,
): readonly Endpoint[] {
  if (!config.serverCard.isServed) return [];
  const gateway = describeAddress(config, PACKAGE_VERSION);
  return [
    // Names of servers and views are not public: the catalogue has only the gateway.
    {
      ...OPEN_TO_ALL,
      path: '/.well-known/mcp/catalog.json',
      handle: (request) => reply(request, renderServerCatalog(gateway), 'application/json'),
    },
    {
      ...OPEN_TO_ALL,
      path: '/mcp/server-card',
      handle: (request) => reply(request, renderServerCard(gateway), SERVER_CARD_TYPE),
    },
    {
      ...OPEN_TO_ALL,
      path: '/mcp/:server/server-card',
      hasParameter: paths.has,
      handle(request) {
        const name = request.path.slice(START.length, -END.length);
        // The server may be removed between the look-up of the path and this line.
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
