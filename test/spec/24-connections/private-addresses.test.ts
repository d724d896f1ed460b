// What a server on the internet names is never looked for inside the network: neither its metadata nor its authorization server.
import { expect, test } from 'vitest';
import type { Network } from '../../../src/platform/outbound/public-network.ts';
import { GO_ON } from '../../support/connections/connect-steps.ts';
import { startConnectingGateway } from '../../support/connections/connecting-gateway.ts';
import { KEEPS_TO_MCP } from '../../support/connections/habits.ts';
import { startProtectedServer } from '../../support/connections/protected-server.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';

const PUBLIC_URL = 'https://mcp.example/mcp';

/** Names that resolve to addresses which are not public. */
const ADDRESSES: Readonly<Record<string, string>> = {
  'inside.example': '10.1.2.3',
  'metadata.example': '169.254.169.254',
  'loop.example': '127.0.0.1',
  'six.example': 'fd00::1',
};

const NAMED = [
  'https://10.1.2.3',
  'https://169.254.169.254',
  'https://127.0.0.1',
  'https://[::1]',
  'https://localhost',
  'https://2130706433',
  'https://0x7f.1',
  ...Object.keys(ADDRESSES).map((host) => `https://${host}`),
];

async function start(issuer: string) {
  const dialled: string[] = [];
  const network: Network = {
    resolve: async (host) => [ADDRESSES[host] ?? '10.9.9.9'],
    dial: async ({ addresses }) => {
      dialled.push(...addresses);
      throw new Error('connect ECONNREFUSED');
    },
  };
  const server = closeAfterTest(
    await startProtectedServer({
      habits: {
        ...KEEPS_TO_MCP,
        namesMetadata: false,
        resourceDocument: { resource: PUBLIC_URL, authorization_servers: [issuer] },
      },
    }),
  );
  const fetched: string[] = [];
  /** The public address of the server leads to it; beside it the gateway asks its own provider, and nobody else. */
  const fetchPublic: typeof fetch = (input, init) => {
    const url = new URL(String(input instanceof Request ? input.url : input));
    if (url.host === 'mcp.example') return fetch(new URL(url.pathname, server.url), init);
    fetched.push(url.href);
    return fetch(input, init);
  };
  const gateway = closeAfterTest(
    await startConnectingGateway({
      servers: { it: { url: PUBLIC_URL, auth: { type: 'oauth' } } },
      deps: { network, fetch: fetchPublic },
    }),
  );
  return { dialled, fetched, server, gateway };
}

test.for([...NAMED, 'issuer of the server itself, over http'])(
  '§24.2 an authorization server at %s is refused before anything is sent there',
  async (named) => {
    const own = closeAfterTest(await startProtectedServer());
    const issuer = named.startsWith('https:') ? named : own.issuer;
    const { dialled, fetched, server, gateway } = await start(issuer);
    const browser = gateway.createBrowser({ person: 'ada' });
    const page = await browser.press(
      await browser.open(`${gateway.baseUrl}/connections/it`),
      GO_ON,
    );
    expect([page.status, page.url.origin]).toEqual([502, gateway.baseUrl]);
    // Who reads the page learns nothing of what is inside.
    expect(page.text).not.toMatch(/ECONN|ENETUNREACH|EACCES/);
    expect(server.seen('resource metadata').length).toBeGreaterThan(0);
    const elsewhere = fetched.filter((url) => !url.startsWith(gateway.provider.origin));
    expect([dialled, elsewhere, own.requests]).toEqual([[], [], []]);
  },
);
