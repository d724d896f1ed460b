import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { type Clock, systemClock } from '../../../src/core/clock.ts';
import type { StdioUpstreamConfig } from '../../../src/core/gateway-file/gateway-file.ts';
import type { JsonObject } from '../../../src/core/json.ts';
import { createStdioUpstream } from '../../../src/features/upstreams/stdio/stdio-upstream.ts';
import {
  GATEWAY_CALLER,
  type Upstream,
  type UpstreamCaller,
  type UpstreamRequest,
} from '../../../src/features/upstreams/upstream.ts';
import { collectLog, type LogLine } from '../gateway/log.ts';

export interface StdioTest {
  readonly upstream: Upstream<StdioUpstreamConfig>;
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
}

/** The server of scripted-server.mjs, begun with these modes. */
export const scripted = (...modes: readonly string[]): Partial<StdioUpstreamConfig> => ({
  command: process.execPath,
  args: [supportFile('scripted-server.mjs'), ...modes],
});

export const supportFile = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

/** Ends its processes when the test does. */
export function useStdio(
  config: Partial<StdioUpstreamConfig> = scripted(),
  {
    clock = systemClock,
    maxBytes = 8 * 1024 * 1024,
    environment = process.env,
  }: StdioTestOptions = {},
): StdioTest {
  const { log, lines } = collectLog();
  const counts: number[] = [];
  const states: (readonly [boolean, string])[] = [];
  const upstream = createStdioUpstream(
    { ...DEFAULTS, ...config },
    { clock, log, maxBytes, environment, onProcessCount: (count) => void counts.push(count) },
  );
  upstream.onStateChange((isUp, reason) => void states.push([isUp, reason]));
  onTestFinished(() => endUpstream(upstream, clock));
  return { upstream, lines, counts, states };
}

/** A clock that a test moves has to move on for that, too. */
async function endUpstream(upstream: Upstream, clock: Clock): Promise<void> {
  let isClosed = false;
  const closed = upstream.close(0).finally(() => {
    isClosed = true;
  });
  while (!isClosed && 'advance' in clock && typeof clock.advance === 'function') {
    clock.advance(100);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await closed;
}

const DEFAULTS: StdioUpstreamConfig = {
  kind: 'stdio',
  name: 'files',
  prefix: 'files',
  timeoutMs: 60_000,
  required: false,
  tools: { include: ['*'], exclude: [], describe: {} },
  command: process.execPath,
  args: [],
  env: {},
  cwd: undefined,
  isolation: 'shared',
  maxProcesses: 20,
  idleSeconds: 300,
  roots: false,
};

export const NO_CAPABILITIES = GATEWAY_CALLER.capabilities;

export const toCaller = (
  sub: string | undefined,
  members: Partial<UpstreamCaller> = {},
): UpstreamCaller => ({
  ...GATEWAY_CALLER,
  user: sub === undefined ? undefined : { sub, claims: {}, token: '' },
  ...members,
});

export const toRequest = (
  method: string,
  params: JsonObject = {},
  members: Partial<UpstreamRequest> = {},
): UpstreamRequest => ({
  method,
  params,
  signal: new AbortController().signal,
  trace: {},
  logLevel: undefined,
  ...members,
});

export const toCall = (
  name: string,
  args: JsonObject = {},
  members: Partial<UpstreamRequest> = {},
): UpstreamRequest => toRequest('tools/call', { name, arguments: args }, members);

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

export function textOf(result: JsonObject): string {
  const { content } = result;
  const [first]: unknown[] = Array.isArray(content) ? content : [];
  return typeof first === 'object' && first !== null && 'text' in first ? String(first.text) : '';
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
