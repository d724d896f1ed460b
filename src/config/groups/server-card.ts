// §32: how clients find this gateway, and what it is called in catalogues and registries.

import { isIPv4 } from 'node:net';
import { flag, type Rule } from '../rules.ts';
import { defineSetting, type Read, readAll, type ValuesOf } from '../setting.ts';
import { serverSettings } from './server.ts';

/** The schemas of server cards and of `server.json` take 200 characters; those of `/mcp/<name>` end in a name of up to 32. */
const MAX_NAME = 160;

const reverseDnsName: Rule<string> = {
  parse: (text) =>
    text.length <= MAX_NAME && /^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/.test(text) ? text : undefined,
  allowed: `a domain in reverse order, a slash and a name, such as com.example/tools, of at most ${MAX_NAME} characters`,
};

/** Characters, in both schemas. */
export const MAX_DESCRIPTION = 100;

const shortText: Rule<string> = {
  parse: (text) =>
    text.trim() !== '' && text.length <= MAX_DESCRIPTION && !/\p{C}/u.test(text) ? text : undefined,
  allowed: `one line of at most ${MAX_DESCRIPTION} characters`,
};

export const serverCardSettings = {
  isServed: defineSetting('SERVER_CARD', flag, {
    default: { value: false },
    summary: 'Serves a server card, by which clients find the gateway before they connect.',
    details:
      'At `/mcp/server-card`, and a catalogue with it at `/.well-known/mcp/catalog.json`; the card of a server or view is at `/mcp/<name>/server-card`. Everybody can read them. They name no tools. See [the reference](reference/server-card.md#32-server-card-and-serverjson).',
  }),
  name: defineSetting('SERVER_CARD_NAME', reverseDnsName, {
    default: {
      text: 'the host of BASE_URL in reverse order, and `/postern`',
      compute: (read) => deriveName(read(serverSettings.baseUrl)),
    },
    summary: 'The name of the gateway in server cards, and in `server.json`.',
    details:
      'Such as `com.example/tools`. A registry takes only names that begin with a domain which you show to be yours.',
  }),
  description: defineSetting('SERVER_CARD_DESCRIPTION', shortText, {
    default: { value: 'MCP servers and tools at one address, behind one login.' },
    summary: 'What server cards and `server.json` say of the gateway.',
  }),
};

export type ServerCardConfig = ValuesOf<typeof serverCardSettings>;

export const readServerCardConfig = (read: Read): ServerCardConfig =>
  readAll(serverCardSettings, read);

/** `https://mcp.example.com` is `com.example.mcp/postern`. An IP address has no order to reverse. */
function deriveName(baseUrl: string): string {
  const { hostname } = new URL(baseUrl);
  // Not by `isIP`: for a name that compiles its pattern for IPv6, which takes 5 ms of a start.
  const isAddress = hostname.startsWith('[') || isIPv4(hostname);
  const host = hostname.replace(/^\[|\]$/g, '');
  const labels = isAddress ? [host] : host.split('.').filter(Boolean).reverse();
  const namespace = labels.join('.').replace(/[^a-zA-Z0-9.-]/g, '-');
  return `${namespace}/postern`.slice(-MAX_NAME);
}
