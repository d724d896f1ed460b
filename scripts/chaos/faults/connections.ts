// Connections that take their time: heads and bodies that never end, answers that nobody reads.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import {
  type ManualConnection,
  openConnection,
} from '../../../test/support/gateway/manual-connection.ts';
import type { SlowConnections, SlowOutcome } from '../client/slow-connections.ts';
import { createTally } from '../client/tally.ts';
import { createUsers } from '../client/users.ts';
import { checkAtMost, checkCount, checkFact, checkNoneRefused, type Fault } from '../fault.ts';
import type { Stage } from '../stage.ts';

const RATE_PER_SECOND = 100;

interface SlowRow {
  readonly name: string;
  readonly title: string;
  /** Until the last of them is closed. */
  readonly limitMs: number;
  /** The bytes that each sends at once. */
  head(token: string, port: number): string;
  /** And then once a second. */
  readonly drop: string;
}

const ROWS: readonly SlowRow[] = [
  {
    name: 'slow-heads',
    title: '5,000 connections that send their headers a byte a second.',
    limitMs: 12_000,
    head: (_token, port) => `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nX-Slow: `,
    drop: 'x',
  },
  {
    name: 'slow-bodies',
    title: '5,000 connections that send their bodies a byte a second.',
    limitMs: 32_000,
    head: (token, port) =>
      `POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{`,
    drop: ' ',
  },
];

const slow: readonly Fault[] = ROWS.map(({ name, title, limitMs, head, drop }) => ({
  name,
  title,
  figure: `All closed within ${limitMs / 1000} s; p99 of others under 100 ms.`,
  async run(stage) {
    const issuer = await stage.startIssuer();
    const gateway = await stage.startGateway(issuer, {});
    const users = await createUsers(issuer);
    const others = await stage.startClient(gateway.url, issuer, { tally: createTally(), users });
    const load = stage.startLoad(RATE_PER_SECOND, others.callAny);
    const count = stage.choose({ full: 5000, short: 200 });
    const { stillOpen, longestMs } = await holdSlowConnections(stage, {
      port: gateway.port,
      heads: Array.from({ length: count }, () => head(users.pick().token, gateway.port)),
      drop,
      patienceMs: limitMs + 10_000,
    });
    await load.stop();
    return {
      tally: others.tally,
      checks: [
        checkCount('still open', stillOpen, 0),
        checkAtMost('the longest is open for', longestMs, limitMs),
        checkAtMost('p99 of others', others.tally.percentile(0.99), 100),
        checkNoneRefused(others.tally),
      ],
    };
  },
}));

async function holdSlowConnections(stage: Stage, slowly: SlowConnections): Promise<SlowOutcome> {
  const file = new URL('../client/slow-connections.ts', import.meta.url);
  const child = fork(file, { execArgv: ['--import', 'tsx'] });
  stage.closeAtEnd({ close: () => child.kill('SIGKILL') });
  child.send(slowly);
  const [outcome] = await once(child, 'message');
  return outcome;
}

/** Nothing read for so long ends a connection. */
const UNREAD_LIMIT_MS = 35_000;

const OF_OTHERS = 10;
const OPEN_EVERY_MS = 40;

const readers: Fault = {
  name: 'slow-readers',
  title: '200 connections that ask for more than the system buffers, and read nothing.',
  figure: 'All closed within 35 s; p99 of others under 100 ms; memory within 256 MB.',
  async run(stage) {
    const issuer = await stage.startIssuer();
    const gateway = await stage.startGateway(issuer, { METRICS_ENABLED: 'true' });
    const others = await stage.startClient(gateway.url, issuer, { connections: OF_OTHERS });
    const load = stage.startLoad(RATE_PER_SECOND, others.callAny);
    // One of the longest pages: 60 of a shorter one fit into what the system buffers for a connection.
    const request = `GET /authors HTTP/1.1\r\nHost: 127.0.0.1:${gateway.port}\r\n\r\n`;
    const openBefore = await readMetric(gateway.url, 'process_open_fds');
    const count = stage.choose({ full: 200, short: 20 });
    await openUnread(stage, gateway.port, count, request.repeat(60));
    const start = performance.now();
    let closedMs = Number.POSITIVE_INFINITY;
    let memory = 0;
    // The short form does not wait until they are closed in time.
    while (performance.now() - start < (stage.isShort ? 1000 : UNREAD_LIMIT_MS + 10_000)) {
      memory = Math.max(memory, await readMetric(gateway.url, 'process_resident_memory_bytes'));
      // A client that reads nothing does not see the end of its connection.
      const open = await readMetric(gateway.url, 'process_open_fds');
      if (open - openBefore <= OF_OTHERS) {
        closedMs = performance.now() - start;
        break;
      }
      await stage.pause(500);
    }
    await load.stop();
    return {
      tally: others.tally,
      checks: [
        ...(stage.isShort ? [] : [checkAtMost('the last is closed', closedMs, UNREAD_LIMIT_MS)]),
        checkAtMost('p99 of others', others.tally.percentile(0.99), 100),
        checkAtMost('memory', memory / 1_048_576, 256, 'MB'),
        checkFact('the process still runs', !gateway.hasEnded),
      ],
    };
  },
};

async function readMetric(url: string, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
}

/** Some at a time: their requests are work, too. */
async function openUnread(stage: Stage, port: number, count: number, request: string) {
  const connections: ManualConnection[] = [];
  stage.closeAtEnd({
    close() {
      for (const { socket } of connections) socket.destroy();
    },
  });
  while (connections.length < count) {
    const connection = await openConnection(port, request);
    connection.socket.pause();
    connections.push(connection);
    await stage.pause(OPEN_EVERY_MS);
  }
}

export const connectionFaults: readonly Fault[] = [...slow, readers];
