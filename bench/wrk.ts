// Load: wrk (Debian's package), one thread, a bounded time. It compares every answer with the right one.
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Call } from './calls.ts';

/** The right answer, byte by byte: the id of the call stands between the two. */
export interface ExpectedAnswer {
  readonly beforeId: string;
  readonly afterId: string;
  /** That every answer has to have, as they are sent. */
  readonly headerNames: readonly string[];
}

export interface Load {
  readonly call: Call;
  readonly expected: ExpectedAnswer;
  readonly connections: number;
  readonly seconds: number;
}

export interface LoadResult {
  readonly requests: number;
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
  /** Answers that are not the expected one to a call that waits for it, and what `socketErrors` counts. */
  readonly failures: number;
  /** What happened to connections, and how often; empty where nothing did. */
  readonly socketErrors: string;
  /** The first of the wrong answers. */
  readonly wrongAnswer?: string;
}

const run = promisify(execFile);

export function ensureWrk(): void {
  if (spawnSync('wrk', ['--version']).error === undefined) return;
  if (process.getuid?.() !== 0) throw new Error('wrk is missing: apt-get install wrk');
  execFileSync('apt-get', ['update', '-qq'], { stdio: 'ignore' });
  execFileSync('apt-get', ['install', '-y', '-qq', 'wrk'], { stdio: 'ignore' });
}

export async function runWrk(folder: string, load: Load): Promise<LoadResult> {
  const script = join(folder, 'load.lua');
  writeFileSync(script, renderLuaScript(load));
  const { stdout } = await run('wrk', [
    '--threads=1',
    `--connections=${load.connections}`,
    `--duration=${load.seconds}s`,
    `--script=${script}`,
    load.call.url,
  ]);
  const report = /^REPORT (.*)$/m.exec(stdout)?.[1];
  if (report === undefined) throw new Error(`wrk gave no report:\n${stdout}`);
  const wrongAnswer = /^WRONG (.*)$/m.exec(stdout)?.[1];
  return { ...JSON.parse(report), ...(wrongAnswer !== undefined && { wrongAnswer }) };
}

/** Stands in the request's head where a header differs from call to call. */
const VARIED = 'VARIED';

/** Each call has an id of its own; all are of one length, so that the request's head stays the same. */
function renderLuaScript({ call, expected }: Load): string {
  const marker = 'ID';
  const { variedHeader, callers = [] } = call;
  const own = new Set(Object.keys(callers[0] ?? {}));
  const common = Object.entries(call.headers).filter(([name]) => !own.has(name));
  const headers = {
    ...Object.fromEntries(common),
    ...(variedHeader && { [variedHeader.name]: VARIED }),
  };
  const [beforeId = '', afterId = ''] = call.renderBody(marker).split(`"${marker}"`);
  return `
wrk.method = "POST"
wrk.body = ${quoteLua(beforeId)} .. "1000000" .. ${quoteLua(afterId)}
${Object.entries(headers)
  .map(([name, value]) => `wrk.headers[ ${quoteLua(name)} ] = ${quoteLua(value)}`)
  .join('\n')}

local callers = { ${callers.map(renderHeaderLines).join(', ')} }
local head, rest
local before, after = ${quoteLua(beforeId)}, ${quoteLua(afterId)}
local id = 1000000
local waiting = {}
function request()
  if head == nil then
    head = wrk.format():sub(1, -1 - #wrk.body)
    local first, last = head:find("${VARIED}", 1, true)
    if first then head, rest = head:sub(1, first - 1), head:sub(last + 1) end
    if #callers > 0 then
      local line = head:find("\\r\\n", 1, true)
      head, rest = head:sub(1, line + 1), head:sub(line + 2)
    end
  end
  id = id + 1
  waiting[id] = true
  ${renderReturn(call)}
end

local expectedBefore, expectedAfter = ${quoteLua(expected.beforeId)}, ${quoteLua(expected.afterId)}
local names = { ${expected.headerNames.map(quoteLua).join(', ')} }
wrong = 0
wrongAnswer = ""
function response(status, headers, body)
  local answered = tonumber(body:sub(#expectedBefore + 1, #expectedBefore + 7))
  local isRight = status == 200 and waiting[answered]
    and body == expectedBefore .. answered .. expectedAfter
  local missing = ""
  for i = 1, #names do
    if headers[names[i]] == nil then isRight, missing = false, missing .. " without " .. names[i] end
  end
  if isRight then
    waiting[answered] = nil
  else
    wrong = wrong + 1
    if wrong == 1 then wrongAnswer = (status .. missing .. " " .. body):gsub("%c", " ") end
  end
end

local thread
function setup(created) thread = created end
function done(summary, latency)
  local errors = summary.errors
  if thread:get("wrong") > 0 then io.write("WRONG ", thread:get("wrongAnswer"), "\\n") end
  local socketErrors = {}
  local function tell(count, name)
    if count > 0 then socketErrors[#socketErrors + 1] = count .. " " .. name end
  end
  tell(errors.connect, "not connected")
  tell(errors.read + errors.write, "broken connections")
  tell(errors.timeout, "answers after more than 2 s")
  io.write(string.format(
    'REPORT {"requests":%d,"requestsPerSecond":%f,"p50Ms":%f,"p99Ms":%f,"p999Ms":%f,"failures":%d,"socketErrors":"%s"}\\n',
    summary.requests, summary.requests / (summary.duration / 1e6),
    latency:percentile(50) / 1000, latency:percentile(99) / 1000, latency:percentile(99.9) / 1000,
    thread:get("wrong") + errors.connect + errors.read + errors.write + errors.timeout,
    table.concat(socketErrors, ", ")))
end
`;
}

function renderReturn({ variedHeader, callers }: Call): string {
  if (variedHeader !== undefined) {
    return `local n = id % ${variedHeader.count}
  return head .. ${variedHeader.lua} .. rest .. before .. id .. after`;
  }
  return callers === undefined
    ? 'return head .. before .. id .. after'
    : 'return head .. callers[id % #callers + 1] .. rest .. before .. id .. after';
}

/** As a short string of Lua: in a long one, the end of a line is always a single character. */
const renderHeaderLines = (headers: Readonly<Record<string, string>>): string =>
  JSON.stringify(
    Object.entries(headers)
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join(''),
  );

const quoteLua = (text: string) => `[==[${text}]==]`;
