// The gateway itself gets no CPU, or its clock jumps: Redis is well all the time.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder, type RunningPostern } from '../../../test/support/gateway/process.ts';
import { startRedis } from '../../../test/support/stores/redis.ts';
import { ensureCommand } from '../../../test/support/tools/debian.ts';
import { checkFact, checkNoneRefused, type Fault } from '../fault.ts';
import { startCalls, startOverRedis } from '../servers/redis.ts';
import type { Stage } from '../stage.ts';

const OUTAGE = 'The store does not answer';

const starved: Fault = {
  name: 'starved',
  title: 'The gateway shares its core with three processes that never rest.',
  figure: 'Slower, and 503 for what does not fit; the log speaks of no outage.',
  async run(stage) {
    // The rate that a quarter of a core can sustain.
    const { gateway, client, load } = await startOverRedis(stage, { full: 100, short: 30 });
    execFileSync('taskset', ['-acp', '0', String(gateway.pid)], { stdio: 'ignore' });
    for (let neighbour = 0; neighbour < 3; neighbour += 1) startNeighbour(stage);
    await stage.pause(stage.choose({ full: 30_000, short: 2000 }));
    await load.stop();
    return {
      tally: client.tally,
      checks: [checkNoOutage(gateway)],
    };
  },
};

const stopped: Fault = {
  name: 'stopped',
  title: 'The gateway is stopped for three seconds and goes on (SIGSTOP, SIGCONT), five times.',
  figure: 'Slower, and 503 for what does not fit; the log speaks of no outage.',
  async run(stage) {
    const { gateway, client, load } = await startOverRedis(stage);
    for (let times = 0; times < stage.choose({ full: 5, short: 1 }); times += 1) {
      await stage.pause(1000);
      gateway.kill('SIGSTOP');
      await stage.pause(stage.isShort ? 1500 : 3000);
      gateway.kill('SIGCONT');
    }
    await stage.pause(1000);
    await load.stop();
    return {
      tally: client.tally,
      checks: [checkNoOutage(gateway)],
    };
  },
};

const LIBRARY = '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1';
/** The time that it says is read so often. */
const READ_EVERY_S = 1;

const clockJumps: Fault = {
  name: 'clock-jumps',
  title:
    "The gateway's clock jumps an hour ahead of Redis's, then two hours back, then is right again.",
  figure: 'No session is lost, no valid token is refused.',
  async run(stage) {
    ensureCommand('faketime', 'faketime');
    const redis = stage.closeAtEnd(await startRedis());
    const file = join(await makeFolder(), 'faketime');
    await writeFile(file, '+0');
    const { gateway, client, load } = await startCalls(stage, redis.url, {
      LD_PRELOAD: LIBRARY,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_CACHE_DURATION: String(READ_EVERY_S),
      // The time that never jumps does not jump here.
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      // By the gateway's clock these would end within the jump.
      MCP_SESSION_TTL_SECONDS: '1200',
    });
    for (const offset of ['+3600', '-3600', '+0']) {
      await writeFile(file, offset);
      await stage.pause(stage.choose({ full: 30_000, short: READ_EVERY_S * 1000 + 800 }));
    }
    await load.stop();
    await client.checkSessions();
    return {
      tally: client.tally,
      checks: [
        checkFact('the gateway saw the jumps', hasJumped(gateway)),
        checkNoneRefused(client.tally),
      ],
    };
  },
};

/** The times of its log lines are an hour and more apart. */
function hasJumped(gateway: RunningPostern): boolean {
  const times = gateway.log().map(({ time }) => new Date(String(time)).getTime());
  return Math.max(...times) - Math.min(...times) > 3_600_000;
}

const checkNoOutage = (gateway: RunningPostern) =>
  checkFact('no outage in the log', !gateway.stdout.includes(OUTAGE));

function startNeighbour(stage: Stage): void {
  const child: ChildProcess = spawn('taskset', ['-c', '0', process.execPath, '-e', 'for (;;);'], {
    stdio: 'ignore',
  });
  stage.closeAtEnd({ close: () => child.kill('SIGKILL') });
}

export const starvedFaults: readonly Fault[] = [starved, stopped, clockJumps];
