// The pages of this site, and the operators' page (§22), as the gateway opens them.

import type { Endpoint } from '../http/endpoint/endpoint.ts';
import { createJsonReply } from '../http/endpoint/message.ts';
import { JSONRPC } from '../http/endpoint/render-error.ts';
import { listTools } from '../mcp/catalog/own-catalog.ts';
import type { ServedCatalog } from '../mcp/catalog/served-catalog.ts';
import { defineFeature, type Gauges } from '../mcp/feature.ts';
import type { ServedFile } from '../mcp/upstream/upstream-config.ts';
import { PACKAGE_VERSION } from '../platform/own-files.ts';
import {
  METRICS_CONTENT_TYPE,
  type Metrics,
  type StoredCounts,
} from '../telemetry/metrics/metrics.ts';
import { openOperatorsNotes } from './admin.ts';
import { type Logo, openSite } from './open-site.ts';
import { createServerCardEndpoints } from './server-card.ts';

/** What is noted for operators, before they ask; undefined where there are none. */
export const operatorsNotes = defineFeature({
  name: 'notes for operators',
  open: (
    runtime,
    { findIssuerOf }: { readonly findIssuerOf: Parameters<typeof openOperatorsNotes>[1] },
  ) => ({
    gives: { operated: openOperatorsNotes(runtime, findIssuerOf) },
  }),
});

/** What pages show of this gateway, and what it says of itself to those who have not connected yet. */
export const site = defineFeature({
  name: 'site',
  open(
    runtime,
    {
      logo,
      servedFile,
      connections,
      catalog,
      hasPaths,
    }: {
      readonly logo: Logo | undefined;
      readonly servedFile: ServedFile;
      /** Undefined where nobody can connect. */
      readonly connections: object | undefined;
      /** Of `/mcp`. */
      readonly catalog: ServedCatalog;
      /** Users are told what each path costs. */
      readonly hasPaths: boolean;
    },
  ) {
    const { getPublicTools, endpoints } = openSite(runtime, logo, () => listTools(catalog), {
      hasConnections: () =>
        connections !== undefined && servedFile.listConnectionServers().length > 0,
      hasPaths,
    });
    return {
      gives: { getPublicTools },
      endpoints: [...endpoints, ...createServerCardEndpoints(runtime.config, servedFile)],
    };
  },
});

// §4.2, §4.3, §4.11: liveness, readiness and metrics.

/** Each check resolves when the dependency can be used, and rejects when it cannot. */
export const createHealthEndpoints = (
  checks: Readonly<Record<string, () => Promise<void>>>,
  isShuttingDown: () => boolean,
): readonly Endpoint[] => [
  // §4.2. Needs no dependency.
  {
    ...PROBE,
    path: '/health',
    isServedWhenBusy: true,
    handle: () => createJsonReply(200, { status: 'ok', version: PACKAGE_VERSION }, NO_STORE),
  },
  // §4.3: 503 while a check fails or the service is shutting down.
  {
    ...PROBE,
    path: '/health/ready',
    async handle() {
      const results = await Promise.allSettled(Object.values(checks).map((check) => check()));
      const isStopping = isShuttingDown();
      const isReady = !isStopping && results.every(({ status }) => status === 'fulfilled');
      // Only the kind of failure: the endpoint is public, addresses belong into the log.
      const reports = Object.keys(checks).map((name, at) => [
        name,
        { status: results[at]?.status === 'fulfilled' ? 'ok' : 'unavailable' },
      ]);
      const body = {
        status: isReady ? 'ready' : 'not_ready',
        version: PACKAGE_VERSION,
        checks: Object.fromEntries(reports),
        ...(isStopping && { details: 'The service is shutting down.' }),
      };
      return createJsonReply(isReady ? 200 : 503, body, NO_STORE);
    },
  },
];

const PROBE = { kind: 'open', method: 'GET', errors: JSONRPC, isProbe: true } as const;

const NO_STORE = { 'Cache-Control': 'no-store' } as const;

// §4.11: the metrics endpoint.

/**
 * If the store cannot answer, the gauge is left out and the rest of the metrics, needed most during an outage, is
 * still served.
 */
export const createMetricsEndpoints = (
  metrics: Metrics,
  gauges: readonly Gauges[],
): readonly Endpoint[] => [
  {
    ...PROBE,
    path: '/metrics',
    async handle() {
      const [activeSessions, connections] = await Promise.all([
        readGauge(gauges, 'activeSessions'),
        readGauge(gauges, 'connections'),
      ]);
      return {
        status: 200,
        headers: { 'Content-Type': METRICS_CONTENT_TYPE, ...NO_STORE },
        body: await metrics.renderOpenMetrics({ activeSessions, connections: connections ?? [] }),
      };
    },
  },
];

/** Undefined where no feature has it, or the store cannot answer. */
async function readGauge<Gauge extends keyof StoredCounts>(
  gauges: readonly Gauges[],
  name: Gauge,
): Promise<StoredCounts[Gauge] | undefined> {
  try {
    return await gauges.find((one) => one[name] !== undefined)?.[name]?.();
  } catch {
    return undefined;
  }
}
