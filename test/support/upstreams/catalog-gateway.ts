// A gateway with servers behind it, as a configuration file puts them there.

import { readFileSync } from 'node:fs';
import type { GatewayFile } from '../../../src/gateway/configuration/gateway-file.ts';
import type { Deps } from '../../../src/gateway/gateway.ts';
import { createLocalCatalog } from '../../../src/index.ts';
import type { Lock } from '../../../src/mcp/catalog/approved-items.ts';
import type { Catalog } from '../../../src/mcp/catalog/catalog.ts';
import type { Clock } from '../../../src/platform/clock.ts';
import {
  INITIALIZE_REQUEST,
  type RpcOptions,
  startGateway,
  type TestGateway,
} from '../gateway/gateway.ts';
import type { LogLine } from '../gateway/log.ts';
import { closeAfterTest } from '../lifetimes.ts';
import { readFile } from './gateway-file.ts';

export interface CatalogGateway extends TestGateway {
  /** What the log says of what servers list. */
  lines(): readonly LogLine[];
  reload(file: object, lock?: Lock): Promise<void>;
  /** The members of a list as a client gets them in a session, all pages. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into items of every shape
  list(method: string, session?: string, token?: string): Promise<readonly any[]>;
  /** Names, or URIs, of what is listed. */
  listNames(method: string, session?: string, token?: string): Promise<readonly string[]>;
}

export interface CatalogGatewayOptions {
  /** As the configuration file has it; a text in place of a server is its URL. */
  readonly file: object;
  /** Clients come to `/mcp/<view>`. */
  readonly view?: string;
  readonly builtIn?: Catalog;
  readonly lock?: Lock;
  readonly clock?: Clock;
  readonly env?: Readonly<Record<string, string>>;
  readonly deps?: Partial<Deps>;
}

const NOTHING = createLocalCatalog({});
const SETTINGS = { OAUTH_STATE_SECRET: 'one-secret-of-more-than-32-characters' };

export async function startCatalogGateway(options: CatalogGatewayOptions): Promise<CatalogGateway> {
  const { file, view, builtIn = NOTHING, lock, clock, env, deps } = options;
  const gateway = await startGateway({
    env: { ...SETTINGS, ...env },
    deps: {
      file: await parseServers(file),
      catalog: builtIn,
      ...(lock && { lock }),
      ...(clock && { clock }),
      ...deps,
    },
  });

  async function rpc(message: unknown, { session, token, headers }: RpcOptions = {}) {
    return gateway.request({
      method: 'POST',
      path: view === undefined ? '/mcp' : `/mcp/${view}`,
      body: message,
      headers: {
        authorization: `Bearer ${token ?? (await gateway.issuer.sign())}`,
        ...(session !== undefined && { 'mcp-session-id': session }),
        ...headers,
      },
    });
  }

  const call = (session: string, method: string, params?: unknown, token?: string) =>
    rpc(
      { jsonrpc: '2.0', id: 1, method, ...(params !== undefined && { params }) },
      { session, ...(token !== undefined && { token }) },
    );

  async function open(given?: RpcOptions): Promise<string> {
    const { status, headers, text } = await rpc(INITIALIZE_REQUEST, given);
    const session = headers['mcp-session-id'];
    if (session === undefined) throw new Error(`initialize answered ${status}: ${text}`);
    return session;
  }

  async function list(method: string, session?: string, token?: string) {
    const id = session ?? (await open(token === undefined ? {} : { token }));
    const items: unknown[] = [];
    let cursor: string | undefined;
    do {
      const { json } = await call(id, method, cursor === undefined ? {} : { cursor }, token);
      const { nextCursor, ...members } = json.result;
      items.push(...Object.values(members).flat());
      cursor = nextCursor;
    } while (cursor !== undefined);
    // biome-ignore lint/suspicious/noExplicitAny: tests look into items of every shape
    return items as any[];
  }

  return {
    ...gateway,
    rpc,
    call,
    open,
    list,
    lines: () => gateway.log.filter(({ msg }) => msg.startsWith('Server ')),
    listNames: async (method, session, token) =>
      (await list(method, session, token)).map(
        ({ uriTemplate, uri, name }) => uriTemplate ?? uri ?? name,
      ),
    reload: async (next, newLock) =>
      gateway.gateway.reload({ file: await parseServers(next), lock: newLock }),
  };
}

/** Closed once the test has ended. */
export const startForTest = async (options: CatalogGatewayOptions): Promise<CatalogGateway> =>
  closeAfterTest(await startCatalogGateway(options));

/** Each server may be its URL alone. */
export async function parseServers(content: object): Promise<GatewayFile> {
  const { mcpServers, ...rest } = content as { mcpServers: Record<string, unknown> };
  const servers = Object.entries(mcpServers).map(([name, server]) => [
    name,
    typeof server === 'string' ? { url: server } : server,
  ]);
  return readFile(
    { mcpServers: Object.fromEntries(servers), ...rest },
    {
      hasStateSecret: true,
      readText: (path) => readFileSync(path, 'utf8'),
    },
  );
}
