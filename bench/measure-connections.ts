// npm run bench -- connections: whether the memory of a process grows with the users' connections to servers (§24). They are made
// and asked for by what keeps them in the gateway, in this process, at an authorization server that remembers nothing.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { loadConfig } from '../src/config/load.ts';
import { createConnections } from '../src/connections/feature.ts';
import type { ConnectionPorts, ConnectionServer } from '../src/mcp/upstream/connections.ts';
import { openRuntime } from '../src/runtime/runtime.ts';
import { noInternet } from '../test/support/gateway/no-internet.ts';
import { createTemporaryFolder } from '../test/support/temporary-folder.ts';

const SERVERS = 5;
const USER_COUNTS = [200, 2000, 10_000];
const PASSES = 3;
/** How many are made or asked for at once. */
const BATCH = 100;
/** As JSON web tokens are long. */
const TOKEN_CHARACTERS = 1500;
const SECRET = 'a secret of at least thirty-two characters';
const PROVIDER = 'https://id.example';
const BROWSER_HASH = 'a-browser';

/** How much the heap may be larger with all of them than with a fifth: what is kept of a few thousand is full by then. */
const MOST_GROWTH_MB = 5;

export async function measureConnections(): Promise<void> {
  const login = await startLogin();
  const folder = await createTemporaryFolder();
  const config = loadConfig({
    OAUTH_MODE: 'broker',
    BASE_URL: 'http://localhost:3000',
    OIDC_ISSUER: PROVIDER,
    OAUTH_CLIENT_ID: 'gateway',
    OAUTH_STATE_SECRET: SECRET,
    DATA_DIR: folder.path,
    LOG_LEVEL: 'warn',
  });
  const runtime = await openRuntime(config, { fetch: globalThis.fetch, network: noInternet });
  const servers = Array.from({ length: SERVERS }, (_, at) => describeServer(at, login.origin));
  const findServer = (name: string) => servers.find((server) => server.name === name);
  const parts = createConnections(runtime, () => servers);
  if (parts === undefined) throw new Error('Connections need tokens of the gateway.');
  try {
    const heapMb: number[] = [];
    let users = 0;
    for (const wanted of USER_COUNTS) {
      await forEach(users, wanted, servers, (user, server) =>
        connect(parts, user, server, findServer),
      );
      users = wanted;
      for (let pass = 0; pass < PASSES; pass += 1) {
        await forEach(0, users, servers, (user, server) => requireAccess(parts, user, server));
      }
      const memory = readMemory();
      heapMb.push(memory.heapMb);
      console.log(`${users * SERVERS} connections: ${describe(memory)}`);
    }
    const [before = Number.NaN, after = Number.NaN] = heapMb.slice(-2);
    const growth = after - before;
    console.log(
      `With all of them the heap has ${growth.toFixed(1)} MB more than with a fifth (≤ ${MOST_GROWTH_MB}): ${growth <= MOST_GROWTH_MB ? 'reached' : 'missed'}`,
    );
  } finally {
    parts.close();
    await runtime.close();
    await login.close();
    await folder.close();
  }
}

const describeServer = (at: number, origin: string): ConnectionServer => ({
  name: `server-${at}`,
  url: `${origin}/mcp`,
  auth: {
    type: 'oauth',
    clientId: 'made-there',
    authorizationServer: { authorizationUrl: `${origin}/authorize`, tokenUrl: `${origin}/token` },
    resource: false,
    pkce: true,
    owner: 'user',
    allowPrivate: true,
  },
});

/** A token endpoint: each answer has other tokens. */
async function startLogin() {
  let count = 0;
  const server = createServer((req, res) => {
    req.resume().on('end', () => {
      count += 1;
      const accessToken = `access-${count}-`.padEnd(TOKEN_CHARACTERS, 'x');
      const tokens = { access_token: accessToken, refresh_token: `refresh-${count}` };
      res.writeHead(200, { 'content-type': 'application/json' });
      res.end(JSON.stringify({ ...tokens, token_type: 'Bearer', expires_in: 86_400 }));
    });
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as AddressInfo;
  return {
    origin: `http://127.0.0.1:${port}`,
    async close() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

const toOwner = (user: number) => ({ issuer: PROVIDER, sub: `user-${user}` });

/** As a browser does that is sent to the authorization server and back. */
async function connect(
  { connecting }: Pick<ConnectionPorts, 'connecting'>,
  user: number,
  server: ConnectionServer,
  findServer: (name: string) => ConnectionServer | undefined,
): Promise<void> {
  const owner = toOwner(user);
  const begun = await connecting.begin({ owner, server: server.name, scopes: undefined }, server, {
    hash: BROWSER_HASH,
    requestId: undefined,
    shownHosts: undefined,
  });
  if (begun === undefined) throw new Error(`${server.name} has endpoints elsewhere.`);
  const state = new URL(begun).searchParams.get('state') ?? '';
  const query = new Map([
    ['state', state],
    ['code', 'code'],
  ]);
  const back = {
    redirectUri: new URL(begun).searchParams.get('redirect_uri') ?? '',
    browserHash: BROWSER_HASH,
    owner,
    isOperator: false,
    isStillLoggedIn: async () => true,
  };
  await connecting.finish(query, back, findServer);
}

async function requireAccess(
  { connections }: Pick<ConnectionPorts, 'connections'>,
  user: number,
  server: ConnectionServer,
): Promise<void> {
  const { kind } = await connections.getAccess(toOwner(user), server);
  if (kind !== 'active') throw new Error(`user-${user} at ${server.name}: ${kind}`);
}

async function forEach(
  first: number,
  end: number,
  servers: readonly ConnectionServer[],
  task: (user: number, server: ConnectionServer) => Promise<void>,
): Promise<void> {
  const size = BATCH / SERVERS;
  for (let from = first; from < end; from += size) {
    const users = Array.from({ length: Math.min(size, end - from) }, (_, at) => from + at);
    await Promise.all(users.flatMap((user) => servers.map((server) => task(user, server))));
  }
}

interface Memory {
  readonly heapMb: number;
  readonly residentMb: number;
  /** Without pages of files: those of the store's are the system's cache. */
  readonly ownMb: number;
}

function readMemory(): Memory {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  collect();
  collect();
  const { heapUsed, rss } = process.memoryUsage();
  const [, ownKb] = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  return { heapMb: heapUsed / 2 ** 20, residentMb: rss / 2 ** 20, ownMb: Number(ownKb) / 1024 };
}

const describe = ({ heapMb, residentMb, ownMb }: Memory): string =>
  `${heapMb.toFixed(1)} MB of heap, ${ownMb.toFixed(0)} MB resident, ${residentMb.toFixed(0)} MB with the pages of the store`;
