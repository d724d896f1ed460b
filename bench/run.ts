// npm run bench: tools/call of service_ping with token and limits, in both eras. First the service
// as it is, embedded and with Redis, against node:http alone answering the same bytes; then both
// eras over a store that does nothing, which leaves the protocol. Absolute figures differ between
// machines and minutes, ratios of one run are what counts.
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../test/support/gateway/ports.ts';
import { startIssuer } from '../test/support/oauth/issuer.ts';
import { startRedis } from '../test/support/stores/redis.ts';
import { createSessionCall, createStatelessCall } from './calls.ts';
import { measure, printReport, type Subject } from './measure.ts';
import { startTarget, type Target } from './target.ts';
import { type Call, ensureWrk } from './wrk.ts';

const GATEWAY = ['dist/cli/main.js', 'start'];
const STORELESS = ['--import', 'tsx', 'bench/storeless.ts'];

if (!existsSync('dist/cli/main.js')) {
  console.error('Nothing to measure yet: run npm run build first.');
  process.exit(1);
}
ensureWrk();
const folder = await mkdtemp(join(tmpdir(), 'postern-bench-'));
const issuer = await startIssuer();
const redis = await startRedis();
const targets: Target[] = [];
try {
  const token = await issuer.sign({
    aud: 'postern-bench',
    exp: Math.floor(Date.now() / 1000) + 7200,
  });
  const embedded = await startGateway('embedded', GATEWAY, {});
  const withRedis = await startGateway('redis', GATEWAY, { REDIS_URL: redis.url });
  const storeless = await startGateway('storeless', STORELESS, {});
  const createSubject = async (
    name: string,
    target: Target,
    createCall: (url: string, token: string) => Call | Promise<Call>,
  ): Promise<Subject> => ({ name, target, call: await createCall(target.url, token) });

  const redisCall = await createSubject('redis', withRedis, createSessionCall);
  const bare = await startBare(redisCall.call);
  printReport('The service', [
    ...(await measure(folder, [
      { name: 'bare node:http', target: bare, call: { ...redisCall.call, url: bare.url } },
      await createSubject('embedded', embedded, createSessionCall),
      await createSubject('embedded, stateless', embedded, createStatelessCall),
      redisCall,
      await createSubject('redis, stateless', withRedis, createStatelessCall),
    ])),
  ]);
  printReport(
    'The eras, without the work of a store',
    await measure(folder, [
      await createSubject('session', storeless, createSessionCall),
      await createSubject('stateless', storeless, createStatelessCall),
    ]),
  );
} finally {
  for (const target of targets) await target.stop();
  await redis.close();
  await issuer.close();
  await rm(folder, { recursive: true, force: true });
}

async function startGateway(
  name: string,
  args: readonly string[],
  env: Record<string, string>,
): Promise<Target> {
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
  const target = await startTarget(name, args, settings, port);
  targets.push(target);
  return target;
}

async function startBare({ url, headers: callHeaders, body }: Call): Promise<Target> {
  const answer = await fetch(url, { method: 'POST', headers: callHeaders, body });
  const headers = Object.fromEntries(
    [...answer.headers].filter(([name]) => !['date', 'connection', 'keep-alive'].includes(name)),
  );
  const port = await freePort();
  const args = ['--import', 'tsx', 'bench/bare.ts', String(port), String(answer.status)];
  const target = await startTarget(
    'bare node:http',
    [...args, JSON.stringify(headers), await answer.text()],
    {},
    port,
  );
  targets.push(target);
  return target;
}
