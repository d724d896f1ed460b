// Load: wrk (Debian's package), one thread, a bounded time.
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

export interface LoadResult {
  readonly requestsPerSecond: number;
  readonly requests: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Answers that were not 2xx, and socket errors. */
  readonly failures: number;
}

export interface Call {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const run = promisify(execFile);

export function ensureWrk(): void {
  if (spawnSync('wrk', ['--version']).error === undefined) return;
  if (process.getuid?.() !== 0) throw new Error('wrk is missing: apt-get install wrk');
  execFileSync('apt-get', ['update', '-qq'], { stdio: 'ignore' });
  execFileSync('apt-get', ['install', '-y', '-qq', 'wrk'], { stdio: 'ignore' });
}

export async function runWrk(folder: string, call: Call, seconds: number, connections: number) {
  const script = join(folder, 'post.lua');
  writeFileSync(script, renderLuaScript(call));
  const { stdout } = await run('wrk', [
    '-t1',
    `-c${connections}`,
    `-d${seconds}s`,
    '--latency',
    '-s',
    script,
    call.url,
  ]);
  const report = /^REPORT (.*)$/m.exec(stdout)?.[1];
  if (report === undefined) throw new Error(`wrk gave no report:\n${stdout}`);
  return JSON.parse(report) as LoadResult;
}

const renderLuaScript = ({ headers, body }: Call) => `
wrk.method = "POST"
wrk.body = ${quoteLua(body)}
${Object.entries(headers)
  .map(([name, value]) => `wrk.headers[ ${quoteLua(name)} ] = ${quoteLua(value)}`)
  .join('\n')}
function done(summary, latency, requests)
  local errors = summary.errors
  local seconds = summary.duration / 1e6
  io.write(string.format(
    'REPORT {"requestsPerSecond":%f,"requests":%d,"p50Ms":%f,"p99Ms":%f,"failures":%d}\\n',
    summary.requests / seconds, summary.requests,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
`;

const quoteLua = (text: string) => `[==[${text}]==]`;
