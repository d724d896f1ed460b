// A process that counts requests in windows of a Redis, about one in a millisecond each, until it is killed: `node --import tsx
// counting-process.ts FILE URL COUNTING WINDOWS`. Of each request it writes a line to FILE: which window, when it
// was asked for and answered (milliseconds of the computer's clock that never jumps), and what came of it.
import { openSync, writeSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import type { LimitCounting } from '../../src/config/groups/limits.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { openRedisStore } from '../../src/store/redis/open.ts';
import type { LimitWindow } from '../../src/store/store.ts';
import { collectLog } from '../support/gateway/log.ts';

const [file = '', url = '', counting, windows = '[]'] = process.argv.slice(2);
const parsed: readonly LimitWindow[] = JSON.parse(windows);
const output = openSync(file, 'a');
const store = openRedisStore({
  url,
  sessionKeyPrefix: 'mcp:session:',
  counting: counting as LimitCounting,
  clock: systemClock,
  log: collectLog().log,
});

/** The same for all processes. */
const readClock = () => Number(process.hrtime.bigint() / 1000n) / 1000;

/** What the store does not count passes (§8.4), and is no matter of a limit. */
async function count(window: LimitWindow): Promise<void> {
  const asked = readClock();
  const { verdict } = await Promise.resolve(store.admitRequest([window], undefined)).catch(() => ({
    verdict: undefined,
  }));
  const result = verdict === undefined ? 'uncounted' : verdict.isAdmitted ? 'admitted' : 'refused';
  writeSync(output, `${window.key} ${asked} ${readClock()} ${result}\n`);
}

process.on('message', async () => {
  await store.close();
  process.exit();
});

for (;;) {
  for (const window of parsed) void count(window);
  await pause(1);
}
