// An HTTP upstream as the gateway makes it, with an embedded store of its own.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Clock, systemClock } from '../../../src/core/clock.ts';
import type { HttpUpstreamConfig } from '../../../src/core/gateway-file/gateway-file.ts';
import { createSeal } from '../../../src/core/seal/seal.ts';
import { openEmbeddedStore } from '../../../src/core/store/embedded/open.ts';
import type { Store } from '../../../src/core/store/store.ts';
import { createHttpUpstream } from '../../../src/features/upstreams/http/http-upstream.ts';
import type { HttpUpstreamDeps } from '../../../src/features/upstreams/http/http-upstream-deps.ts';
import type { Upstream } from '../../../src/features/upstreams/upstream.ts';
import { collectLog, type LogLine } from '../gateway/log.ts';

export interface OpenUpstream {
  readonly upstream: Upstream;
  readonly lines: readonly LogLine[];
  readonly store: Store;
  /** Another replica: the same store, nothing else in common. */
  openReplica(): Upstream;
  close(): Promise<void>;
}

const KEY_PREFIX = 'mcp:session:';

export async function openHttpUpstream(
  config: Partial<HttpUpstreamConfig> & Pick<HttpUpstreamConfig, 'url'>,
  given: Partial<HttpUpstreamDeps> & { readonly clock?: Clock } = {},
): Promise<OpenUpstream> {
  const { log, lines } = collectLog();
  const clock = given.clock ?? systemClock;
  const dataDir = await mkdtemp(join(tmpdir(), 'postern-upstream-'));
  const store = await openEmbeddedStore({ dataDir, sessionKeyPrefix: KEY_PREFIX, clock, log });
  const seal = createSeal(['a secret of thirty-two characters']);
  const opened: Upstream[] = [];

  function openReplica(): Upstream {
    const upstream = createHttpUpstream(
      { ...DEFAULTS, ...config },
      {
        clock,
        log,
        store,
        getSeal: async () => seal,
        getHeaders: async () => ({}),
        maxBytes: 1_000_000,
        outbound: { httpProxy: undefined, httpsProxy: undefined, noProxy: [] },
        sessionKeyPrefix: KEY_PREFIX,
        sessionTtlSeconds: 3600,
        ...given,
      },
    );
    opened.push(upstream);
    return upstream;
  }

  return {
    upstream: openReplica(),
    lines,
    store,
    openReplica,
    async close() {
      await Promise.all(opened.map((upstream) => upstream.close(0)));
      await store.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

const DEFAULTS = {
  kind: 'http',
  name: 'server',
  prefix: 'server',
  timeoutMs: 30_000,
  required: false,
  tools: { include: ['*'], exclude: [], describe: {} },
  transport: 'streamable-http',
  headers: {},
  ca: undefined,
  auth: { type: 'none' },
} as const;
