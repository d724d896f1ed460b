// npm run bench: tools/call of service_ping with token, session and limits, embedded and with
// Redis, against node:http alone answering the same bytes. One run, several rounds, medians:
// absolute figures differ between machines and minutes, ratios are what counts.
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startIssuer } from '../test/support/issuer.ts';
import { freePort } from '../test/support/ports.ts';
import { startRedis } from '../test/support/redis.ts';
import { startTarget, type Target } from './target.ts';
import { type Call, ensureWrk, type Load, load } from './wrk.ts';

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5);
const SECONDS = Number(process.env.BENCH_SECONDS ?? 4);
const CONNECTIONS = 32;
const GATEWAY = 'dist/cli/main.js';

interface Measured extends Load {
  readonly cpuMicroseconds: number;
}

if (!existsSync(GATEWAY)) {
  console.error('Nothing to measure yet: run npm run build first.');
  process.exit(1);
}
ensureWrk();
const folder = await mkdtemp(join(tmpdir(), 'postern-bench-'));
const issuer = await startIssuer();
const redis = await startRedis();
const targets: Target[] = [];
try {
  const embedded = await startGateway('embedded', {});
  const withRedis = await startGateway('redis', { REDIS_URL: redis.url });
  const token = await issuer.sign({
    aud: 'postern-bench',
    exp: Math.floor(Date.now() / 1000) + 7200,
  });
  const calls = new Map<Target, Call>();
  for (const target of [embedded, withRedis]) calls.set(target, await callOf(target, token));
  const bare = await startBare(calls.get(withRedis) as Call);
  calls.set(bare, { ...(calls.get(withRedis) as Call), url: bare.url });
  report(await measureAll([bare, embedded, withRedis], calls));
} finally {
  for (const target of targets) await target.stop();
  await redis.close();
  await issuer.close();
  await rm(folder, { recursive: true, force: true });
}

async function startGateway(name: string, env: Record<string, string>): Promise<Target> {
  const port = await freePort();
  const settings = {
    PORT: String(port),
    HOST: '127.0.0.1',
    NODE_ENV: 'production',
    BASE_URL: `http://127.0.0.1:${port}`,
    DATA_DIR: join(folder, name),
    OIDC_ISSUER: issuer.url,
    OIDC_AUDIENCE: 'postern-bench',
    // The real window; only the maximum is out of the way.
    MCP_RATE_LIMIT_MAX: '1000000000',
    MCP_GLOBAL_RATE_LIMIT_MAX: '1000000000',
    LOG_LEVEL: 'warn',
    TRUST_PROXY: 'none',
    ...env,
  };
  const target = await startTarget(name, [GATEWAY, 'start'], settings, port);
  targets.push(target);
  return target;
}

async function startBare({ url, headers, body }: Call): Promise<Target> {
  const answer = await fetch(url, { method: 'POST', headers, body });
  const sent = Object.fromEntries(
    [...answer.headers].filter(([name]) => !['date', 'connection', 'keep-alive'].includes(name)),
  );
  const port = await freePort();
  const args = ['--import', 'tsx', 'bench/bare.ts', String(port), String(answer.status)];
  const target = await startTarget(
    'bare node:http',
    [...args, JSON.stringify(sent), await answer.text()],
    {},
    port,
  );
  targets.push(target);
  return target;
}

async function callOf({ url }: Target, token: string): Promise<Call> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
  const initialize = { protocolVersion: '2025-11-25', capabilities: {} };
  const opened = await fetch(url, {
    method: 'POST',
    headers,
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: initialize }),
  });
  const session = opened.headers.get('mcp-session-id');
  if (session === null) throw new Error(`initialize answered ${opened.status}`);
  const params = { name: 'service_ping', arguments: { message: 'hello' } };
  return {
    url,
    headers: { ...headers, 'mcp-session-id': session },
    body: JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'tools/call', params }),
  };
}

/** Rounds are interleaved, so that a slow minute of the machine hits all targets alike. */
async function measureAll(all: readonly Target[], calls: ReadonlyMap<Target, Call>) {
  const measured = new Map<Target, Measured[]>(all.map((target) => [target, []]));
  for (const target of all) await load(folder, calls.get(target) as Call, 2, CONNECTIONS);
  for (let round = 0; round < ROUNDS; round++) {
    for (const target of all) {
      const before = target.cpuSeconds();
      const result = await load(folder, calls.get(target) as Call, SECONDS, CONNECTIONS);
      const cpuMicroseconds = ((target.cpuSeconds() - before) / result.requests) * 1e6;
      measured.get(target)?.push({ ...result, cpuMicroseconds });
    }
  }
  return measured;
}

function report(measured: ReadonlyMap<Target, readonly Measured[]>): void {
  const rows = [...measured].map(([{ name }, rounds]) => ({
    name,
    'requests/s': median(rounds.map((round) => round.requestsPerSecond)),
    'p50 ms': median(rounds.map((round) => round.p50Ms)),
    'p99 ms': median(rounds.map((round) => round.p99Ms)),
    'CPU µs/request': median(rounds.map((round) => round.cpuMicroseconds)),
    failures: rounds.reduce((sum, round) => sum + round.failures, 0),
  }));
  const bare = rows[0]?.['requests/s'] ?? Number.NaN;
  console.log(`${ROUNDS} rounds of ${SECONDS} s, ${CONNECTIONS} connections, medians`);
  console.table(
    rows.map(({ name, ...figures }) => ({
      name,
      ...Object.fromEntries(
        Object.entries(figures).map(([key, value]) => [key, Number(value.toPrecision(3))]),
      ),
      'of bare': Number((figures['requests/s'] / bare).toFixed(3)),
    })),
  );
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
