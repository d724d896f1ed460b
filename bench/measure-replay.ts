// npm run bench -- replay: how long `postern rules replay` takes for 100,000 lines, each by itself.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const LINES = 100_000;
const RULES = 20;
const GOAL_SECONDS = 10;
const ROUNDS = 3;

/** Half of them name claims, a third has conditions. */
const rules = Array.from({ length: RULES }, (_, at) => ({
  ...(at % 2 === 0 ? { who: { groups: [`group-${at}`] } } : { who: 'everyone' }),
  ...(at % 3 === 0 && {
    when: `user.email.endsWith('@example-${at}.com') || user.sub == 'user-${at}'`,
  }),
  may: [`server-${at}__*`, 'prompt:greeting'],
}));

const line = (at: number, isLikeOthers: boolean) => {
  const kind = isLikeOthers ? at % 1000 : at;
  return JSON.stringify({
    time: new Date(1_790_000_000_000 + at * 1000).toISOString(),
    event: 'tool_call',
    outcome: kind % 5 === 0 ? 'denied' : 'success',
    ...(kind % 5 === 0 && { reason: 'rules' }),
    user: `user-${kind % 400}`,
    client: 'cursor',
    ip: '192.0.2.7',
    who: { groups: ['staff', `group-${kind % 40}`], email: `user@example-${kind % 9}.com` },
    server: `server-${kind % RULES}`,
    tool: `server-${kind % RULES}__tool-${kind}`,
    duration: 41.7,
  });
};

export async function measureReplay(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'postern-bench-'));
  try {
    writeFileSync(join(folder, 'mcp.json'), JSON.stringify({ mcpServers: {}, rules }));
    const rows: Record<string, object> = {};
    for (const isLikeOthers of [true, false]) {
      const lines = Array.from({ length: LINES }, (_, at) => line(at, isLikeOthers));
      writeFileSync(join(folder, 'audit.log'), `${lines.join('\n')}\n`);
      const seconds = Math.min(...Array.from({ length: ROUNDS }, () => timeReplay(folder)));
      rows[isLikeOthers ? '100,000 calls, of 1,000 kinds' : '100,000 calls, all different'] = {
        s: Number(seconds.toPrecision(3)),
        goal: `< ${GOAL_SECONDS} ${seconds < GOAL_SECONDS ? 'reached' : 'missed'}`,
      };
    }
    console.table(rows);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** With the start of the process. */
function timeReplay(folder: string): number {
  const start = performance.now();
  const program = new URL('../dist/cli/main.js', import.meta.url).pathname;
  const args = [
    program,
    'rules',
    'replay',
    '--audit',
    'audit.log',
    '--config',
    'mcp.json',
    '--json',
  ];
  execFileSync(process.execPath, args, { cwd: folder, maxBuffer: 2 ** 30 });
  return (performance.now() - start) / 1000;
}
