// Rolling restarts of two replicas, no stickiness: no call to a server behind them fails, and no session at these
// servers is lost.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { freePort } from '../support/gateway/ports.ts';
import {
  endPosterns,
  makeFolder,
  type RunningPostern,
  startPostern,
} from '../support/gateway/process.ts';
import { openSession, rpc } from '../support/gateway/process-http.ts';
import { closeAfterTest } from '../support/lifetimes.ts';
import { startRedis } from '../support/stores/redis.ts';
import { chooseCount } from '../support/tools/long-run.ts';
import { startSdk1Http } from '../support/upstreams/sdk-1-http.ts';
import { startSdk2Http } from '../support/upstreams/sdk-2-http.ts';

const RESTARTS = chooseCount(4, 20);
const CALLERS = 8;
/** Between two calls of a caller: they are to be under way at any time, not to take all CPUs. */
const PAUSE_MS = 20;
const LONG = { timeout: 240_000 } as const;

afterEach(endPosterns);

test(
  '§18.3 rolling restarts of two replicas, again and again: no call to an HTTP server fails',
  LONG,
  async () => {
    const redis = closeAfterTest(await startRedis());
    const sessions = closeAfterTest(await startSdk1Http());
    const stateless = closeAfterTest(await startSdk2Http());
    const file = join(await makeFolder(), 'mcp.json');
    const mcpServers = { old: { url: sessions.url }, new: { url: stateless.url } };
    await writeFile(file, JSON.stringify({ mcpServers }));
    const settings = {
      REDIS_URL: redis.url,
      AUTH_REQUIRED: 'false',
      OAUTH_CONSENT: 'off',
      // For the requests that are on their way while the load balancer learns that the replica goes.
      SHUTDOWN_DELAY_MS: '500',
      MCP_RATE_LIMIT_MAX: '1000000',
      MCP_GLOBAL_RATE_LIMIT_MAX: '1000000',
    };
    const start = (port: number) =>
      startPostern({ ...settings, PORT: String(port) }, { args: ['start', '--config', file] });

    const [first, second] = [await start(await freePort()), await start(await freePort())];
    /** Those that a load balancer sends new requests to. */
    let serving: readonly RunningPostern[] = [first, second];
    let isOver = false;
    const wrong: string[] = [];
    let calls = 0;

    async function callUntilOver(caller: number, session: string): Promise<void> {
      for (let n = 0; !isOver && wrong.length < 5; n += 1) {
        const { url } = serving[n % serving.length] ?? first;
        const text = `${caller}/${n}`;
        const name = n % 3 === 0 ? 'new__echo' : 'old__echo';
        const params = { name, arguments: { text } };
        const message = { jsonrpc: '2.0', id: n, method: 'tools/call', params };
        const answer = await rpc(url, message, { session })
          .then(async (response) => JSON.parse(await response.text()))
          .catch((error: unknown) => String(error));
        calls += 1;
        const said = answer.result?.content?.[0]?.text;
        if (answer.id !== n || said !== text || answer.result.isError) {
          wrong.push(`${name} ${text}: ${JSON.stringify(answer)}`);
        }
        await pause(PAUSE_MS);
      }
    }

    const opened = await Promise.all(Array.from({ length: CALLERS }, () => openSession(first.url)));
    const callers = opened.map((session, caller) => callUntilOver(caller, session));
    let [old, other] = [first, second];
    for (let restart = 0; restart < RESTARTS; restart += 1) {
      serving = [other];
      old.kill('SIGTERM');
      expect((await old.ended).code).toBe(0);
      const fresh = await start(old.port);
      serving = [other, fresh];
      const before = calls;
      // After wrong answers there are no more calls.
      await expect
        .poll(() => wrong.length > 0 || calls > before + 2 * CALLERS, { timeout: 20_000 })
        .toBe(true);
      expect(wrong).toEqual([]);
      [old, other] = [other, fresh];
    }
    isOver = true;
    await Promise.all(callers);
    expect(wrong).toEqual([]);
    expect(sessions.opened()).toBeLessThanOrEqual(CALLERS + RESTARTS + 2);
  },
);
