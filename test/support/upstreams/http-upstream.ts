// An HTTP upstream as the gateway makes it, with an embedded store of its own.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '../../../src/index.ts';
import type { Upstream } from '../../../src/mcp/upstream/upstream.ts';
import { type Clock, systemClock } from '../../../src/platform/clock.ts';
import type { OutboundConfig } from '../../../src/platform/outbound/proxy-choice.ts';
import type { ServerAccess } from '../../../src/servers/credentials/credential-type.ts';
import type { HttpUpstreamConfig } from '../../../src/servers/http/http-config.ts';
import { createHttpUpstream } from '../../../src/servers/http/http-upstream.ts';
import { openProcessShare } from '../../../src/servers/transport/process-share.ts';
import { openEmbeddedStore } from '../../../src/store/embedded/open.ts';
import { createSeal } from '../../../src/store/seal/seal.ts';
import type { Store } from '../../../src/store/store.ts';
import { collectLog, type LogLine } from '../gateway/log.ts';
import { openTestRuntime } from '../gateway/runtime.ts';

export interface OpenUpstream {
  readonly upstream: Upstream;
  readonly lines: readonly LogLine[];
  readonly store: Store;
  /** What was written to the store: keys and values. */
  readonly written: readonly (readonly [key: string, value: string])[];
  /** How often the store was asked. */
  trips(): number;
  /** Another replica: the same store, nothing else in common. */
  openReplica(other?: Partial<HttpUpstreamConfig>): Upstream;
  close(): Promise<void>;
}

const KEY_PREFIX = 'mcp:session:';

interface GivenToUpstream extends Partial<ServerAccess> {
  readonly clock?: Clock;
  readonly maxBytes?: number;
  readonly outbound?: OutboundConfig;
}

export async function openHttpUpstream(
  config: Partial<HttpUpstreamConfig> & Pick<HttpUpstreamConfig, 'url'>,
  given: GivenToUpstream = {},
): Promise<OpenUpstream> {
  const { log, lines } = collectLog();
  const { clock = systemClock, maxBytes = 1_000_000, outbound, ...access } = given;
  const dataDir = await mkdtemp(join(tmpdir(), 'postern-upstream-'));
  const opening = { dataDir, sessionKeyPrefix: KEY_PREFIX, clock, log };
  const { store, written, trips } = watchStore(await openEmbeddedStore(opening));
  const seal = createSeal(['a secret of thirty-two characters']);
  const settings = loadConfig({
    AUTH_REQUIRED: 'false',
    MAX_UPSTREAM_BYTES: String(maxBytes),
    MCP_SESSION_TTL_SECONDS: '3600',
  });
  const runtime = openTestRuntime({
    config: outbound === undefined ? settings : { ...settings, outbound },
    clock,
    log,
    store,
    getSeal: async () => seal,
  });
  const opened: Upstream[] = [];

  function openReplica(other: Partial<HttpUpstreamConfig> = {}): Upstream {
    const upstream = createHttpUpstream(
      runtime,
      { ...HTTP_DEFAULTS, ...config, ...other },
      { getHeaders: async () => ({}), replaceRefusedToken: undefined, sign: undefined, ...access },
      { ...openProcessShare(runtime, true), isSessionActive: async () => true },
    );
    opened.push(upstream);
    return upstream;
  }

  return {
    upstream: openReplica(),
    lines,
    store,
    written,
    trips,
    openReplica,
    async close() {
      await Promise.all(opened.map((upstream) => upstream.close(0)));
      await store.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

function watchStore(opened: Store) {
  const written: (readonly [key: string, value: string])[] = [];
  let count = 0;
  const store: Store = {
    ...opened,
    get(key) {
      count += 1;
      return opened.get(key);
    },
    set(key, value, ttlSeconds) {
      count += 1;
      written.push([key, value]);
      return opened.set(key, value, ttlSeconds);
    },
    getOrSet(key, value, ttlSeconds) {
      count += 1;
      written.push([key, value]);
      return opened.getOrSet(key, value, ttlSeconds);
    },
    async compareAndSet(key, expected, value, ttlSeconds) {
      const isSet = await opened.compareAndSet(key, expected, value, ttlSeconds);
      if (isSet) written.push([key, value]);
      return isSet;
    },
  };
  return { store, written, trips: () => count };
}

export const HTTP_DEFAULTS = {
  kind: 'http',
  name: 'server',
  prefix: 'server',
  timeoutMs: 30_000,
  required: false,
  tools: { include: ['*'], exclude: [], describe: {} },
  transport: 'streamable-http',
  headers: {},
  ca: undefined,
  cookies: true,
  auth: { type: 'none' },
  era: 'auto',
  roots: true,
} as const;
