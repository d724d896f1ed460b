import { execFileSync } from 'node:child_process';
import { onTestFinished } from 'vitest';
import {
  GATEWAY_CALLER,
  type Upstream,
  type UpstreamCaller,
  type UpstreamRequest,
} from '../../../src/mcp/upstream/upstream.ts';
import { withholdRoots } from '../../../src/mcp/upstream/wrap-upstream.ts';
import { type Clock, systemClock } from '../../../src/platform/clock.ts';
import type { JsonObject } from '../../../src/platform/json.ts';
import type { StdioUpstreamConfig } from '../../../src/servers/stdio/stdio-config.ts';
import { createStdioUpstream } from '../../../src/servers/stdio/stdio-upstream.ts';
import { openProcessShare } from '../../../src/servers/transport/process-share.ts';
import { collectLog, type LogLine } from '../gateway/log.ts';
import { openTestRuntime } from '../gateway/runtime.ts';
import { STDIO_DEFAULTS, scripted, textOf, toCall } from './stdio-calls.ts';

export { scripted, supportFile, textOf, toCall, toCaller, toRequest } from './stdio-calls.ts';

export interface StdioTest {
  readonly upstream: Upstream;
  readonly lines: readonly LogLine[];
  /** How many processes there were, at each change. */
  readonly counts: readonly number[];
  /** What `onStateChange` told. */
  readonly states: readonly (readonly [isUp: boolean, reason: string])[];
}

export interface StdioTestOptions {
  readonly clock?: Clock;
  readonly maxBytes?: number;
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly isSessionActive?: (sessionId: string) => Promise<boolean>;
}

/** Ends its processes when the test does. */
export function useStdio(
  config?: Partial<StdioUpstreamConfig>,
  options?: StdioTestOptions,
): StdioTest {
  const stdio = openStdio(config, options);
  onTestFinished(() => advanceUntil(options?.clock ?? systemClock, stdio.upstream.close(0)));
  return stdio;
}

export function openStdio(
  config: Partial<StdioUpstreamConfig> = scripted(),
  {
    clock = systemClock,
    maxBytes = 8 * 1024 * 1024,
    environment = process.env,
    isSessionActive = async () => true,
  }: StdioTestOptions = {},
): StdioTest {
  const { log, lines } = collectLog();
  const counts: number[] = [];
  const states: (readonly [boolean, string])[] = [];
  const env = { MAX_UPSTREAM_BYTES: String(maxBytes) };
  const runtime = openTestRuntime({ clock, log, env });
  const program = createStdioUpstream(
    runtime,
    { ...STDIO_DEFAULTS, ...config },
    { ...openProcessShare(runtime, true), isSessionActive },
    {
      environment,
      inheritedFiles: [],
      onProcessCount: (_server, count) => void counts.push(count),
    },
  );
  const upstream = withholdRoots(program, log);
  upstream.onStateChange((isUp, reason) => void states.push([isUp, reason]));
  return { upstream, lines, counts, states };
}

/** What waits for a clock that the test moves. */
export async function advanceUntil(clock: Clock, awaited: Promise<void>): Promise<void> {
  let isOver = false;
  const over = awaited.finally(() => {
    isOver = true;
  });
  while (!isOver && 'advance' in clock && typeof clock.advance === 'function') {
    clock.advance(100);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await over;
}

/** The text of a tool's result. */
export async function callTool(
  { upstream }: StdioTest,
  name: string,
  args: JsonObject = {},
  {
    caller = GATEWAY_CALLER,
    ...members
  }: Partial<UpstreamRequest> & { caller?: UpstreamCaller } = {},
): Promise<string> {
  return textOf(await upstream.request(caller, toCall(name, args, members)));
}

/** Whether the process is there; one that has ended, and that nobody asked after, does not count. */
export function isAlive(pid: number): boolean {
  try {
    return !execFileSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' })
      .trim()
      .startsWith('Z');
  } catch {
    return false;
  }
}
