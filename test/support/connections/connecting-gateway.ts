// Gateways with protected servers behind them, one or two over one Redis: broker mode, tokens of their own, and a provider at
// which each person of a test logs in by name.

import { readFileSync } from 'node:fs';
import { createServer, type RequestListener, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { loadConfig } from '../../../src/config/load.ts';
import { formatProblem } from '../../../src/config/problem.ts';
import { parseGatewayFile } from '../../../src/gateway/configuration/gateway-file.ts';
import { createGateway, type Deps, type Gateway } from '../../../src/gateway/gateway.ts';
import { type Clock, systemClock } from '../../../src/platform/clock.ts';
import { openStore } from '../../../src/store/open.ts';
import type { Store } from '../../../src/store/store.ts';
import { specCatalog } from '../catalogs/spec-catalog.ts';
import { type AuditLine, parseAuditLines } from '../gateway/audit-log.ts';
import { onFreePort } from '../gateway/gateway.ts';
import { collectLog, type LogLine } from '../gateway/log.ts';
import { noInternet } from '../gateway/no-internet.ts';
import { GENEROUS } from '../gateway/service.ts';
import { type Emulator, startEmulator } from '../providers/emulator.ts';
import type { Habits } from '../providers/habits.ts';
import { describeWithGroups, OPENID_HABITS } from '../providers/openid-habits.ts';
import { type RedisServer, startRedis } from '../stores/redis.ts';
import { createTemporaryFolder } from '../temporary-folder.ts';
import { type Browser, type BrowserOptions, createBrowser } from './browser.ts';
import { createGatewayUser, type GatewayUser } from './gateway-user.ts';

export interface ConnectingGateway {
  readonly baseUrl: string;
  readonly mcpUrl: URL;
  /** At which people log in to the gateway. */
  readonly provider: Emulator;
  readonly log: readonly LogLine[];
  readonly redis: RedisServer | undefined;
  /** Of the embedded store. */
  readonly dataDir: string;
  auditLines(): readonly AuditLine[];
  auditText(): string;
  /** The gateways that run, to be closed one by one. */
  readonly gateways: readonly Gateway[];
  /** Each request goes to the next of the replicas, unless it says to which. */
  on(replica: number): {
    readonly headers: Readonly<Record<string, string>>;
    readonly fetch: typeof fetch;
  };
  createBrowser(options: BrowserOptions & { readonly replica?: number }): Browser;
  /** Logs a person in by a client of the test's own. */
  logIn(person: string, replica?: number, clientName?: string): Promise<GatewayUser>;
  /** Ends all of them and starts them again, with other lines and settings where they are given. */
  restart(
    servers?: Readonly<Record<string, object>>,
    env?: Readonly<Record<string, string>>,
  ): Promise<void>;
  /** All of them, with other members of the configuration file. */
  reload(file: Readonly<Record<string, unknown>>): Promise<void>;
  close(): Promise<void>;
}

export interface ConnectingGatewayOptions {
  /** The members of `mcpServers`. */
  readonly servers: Readonly<Record<string, object>>;
  /** Other members of the configuration file. */
  readonly file?: Readonly<Record<string, unknown>>;
  readonly env?: Readonly<Record<string, string>>;
  readonly deps?: Partial<Deps>;
  /** Makes the store of a replica of the one that it would have. */
  readonly wrapStore?: (store: Store, replica: number) => Store;
  /** More than one share a Redis; one has the embedded store. */
  readonly replicas?: number;
  readonly clock?: Clock;
}

const CHOICE = 'x-replica';

/** It says of a person in which groups they are, and tells the gateway of logouts where the test says to where. */
const PROVIDER: Habits = {
  ...OPENID_HABITS,
  idTokenMembers: ['auth_time'],
  describeInIdToken: describeWithGroups,
  logoutTokenNames: ['sub'],
};

export async function startConnectingGateway({
  servers,
  file = {},
  env = {},
  deps = {},
  wrapStore = (store) => store,
  replicas = 1,
  clock = systemClock,
}: ConnectingGatewayOptions): Promise<ConnectingGateway> {
  const provider = await startEmulator(PROVIDER, { clock, asksWho: true });
  const redis = replicas > 1 ? await startRedis() : undefined;
  const folder = await createTemporaryFolder();
  const auditPath = join(folder.path, 'audit.log');
  const { log, lines } = collectLog();
  let ports: readonly number[] = [];
  let gateways: Gateway[] = [];
  let turn = 0;
  const front = createServer((req, res) => {
    const { [CHOICE]: choice = turn++ % replicas } = req.headers;
    passOnTo(ports[Number(choice)] ?? 0)(req, res);
  });
  front.keepAliveTimeout = 0;
  await new Promise<void>((listening) => front.listen(0, '127.0.0.1', listening));
  const baseUrl = `http://localhost:${(front.address() as AddressInfo).port}`;

  const settings = {
    BASE_URL: baseUrl,
    HOST: '127.0.0.1',
    DATA_DIR: folder.path,
    AUDIT_LOG: `file:${auditPath}`,
    METRICS_ENABLED: 'true',
    LOG_LEVEL: 'debug',
    ...(redis && {
      REDIS_URL: redis.url,
      OAUTH_STATE_SECRET: 'one-secret-for-all-of-the-replicas',
    }),
    ...GENEROUS,
    OAUTH_TOKEN_RATE_LIMIT_MAX: '10000',
    ...provider.env,
    ...env,
  };
  let config = loadConfig(settings);

  async function parse(
    given: Readonly<Record<string, object>>,
    members: Readonly<Record<string, unknown>>,
  ) {
    const parsed = await parseGatewayFile(
      JSON.stringify({ builtIn: false, ...members, mcpServers: given }),
      {
        fileName: 'mcp.json',
        format: 'json',
        env: {},
        config,
        findProgramUser: async () => ({ kind: 'problem', message: 'There are no users here.' }),
        resolvePath: (path) => path,
        readText: (path) => readFileSync(path, 'utf8'),
      },
    );
    if (parsed.kind === 'problems') throw new Error(parsed.problems.map(formatProblem).join('\n'));
    return parsed.file;
  }

  async function open(given: Readonly<Record<string, object>>): Promise<void> {
    const parsed = await parse(given, file);
    gateways = await Promise.all(
      Array.from({ length: replicas }, async (_, replica) =>
        createGateway(onFreePort(config), {
          store: wrapStore(await openStore(config, { clock, log }), replica),
          log,
          clock,
          catalog: specCatalog,
          network: noInternet,
          file: parsed,
          ...deps,
        }),
      ),
    );
    ports = await Promise.all(gateways.map((gateway) => gateway.listen()));
  }

  const end = () => Promise.all(gateways.map((gateway) => gateway.close()));
  const on: ConnectingGateway['on'] = (replica) => {
    const headers = { [CHOICE]: String(replica) };
    return {
      headers,
      fetch(input, init) {
        const all = new Headers(init?.headers);
        all.set(CHOICE, String(replica));
        return fetch(input, { ...init, headers: all });
      },
    };
  };
  await open(servers);

  return {
    baseUrl,
    mcpUrl: new URL(`${baseUrl}/mcp`),
    provider,
    log: lines,
    redis,
    dataDir: folder.path,
    auditLines: () => parseAuditLines(readFileSync(auditPath, 'utf8')),
    auditText: () => readFileSync(auditPath, 'utf8'),
    get gateways() {
      return gateways;
    },
    on,
    createBrowser: ({ replica, ...options }) =>
      createBrowser({ ...options, ...(replica !== undefined && { headers: on(replica).headers }) }),
    logIn: (person, replica, clientName) =>
      createGatewayUser(
        baseUrl,
        person,
        replica === undefined ? fetch : on(replica).fetch,
        clientName,
      ),
    async restart(given = servers, further = {}) {
      await end();
      config = loadConfig({ ...settings, ...further });
      await open(given);
    },
    async reload(members) {
      const parsed = await parse(servers, members);
      await Promise.all(gateways.map((gateway) => gateway.reload({ file: parsed })));
    },
    async close() {
      front.closeAllConnections();
      await new Promise((closed) => front.close(closed));
      await end();
      await provider.close();
      await redis?.close();
      await folder.close();
    },
  };
}

const passOnTo =
  (port: number): RequestListener =>
  (req, res) => {
    const { method, url, headers } = req;
    const onward = request({ host: '127.0.0.1', port, method, path: url, headers });
    onward.on('response', (answer) => {
      res.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(res);
    });
    onward.on('error', () => (res.headersSent ? res.destroy() : res.writeHead(502).end()));
    // Whoever hangs up here hangs up there.
    res.on('close', () => onward.destroy());
    req.pipe(onward);
  };
