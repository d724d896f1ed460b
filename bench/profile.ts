// Where the CPU time of a server goes while it is under load, by V8's sampling profiler. It runs in rounds of its own,
// because it costs time, too.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Call } from './calls.ts';
import { checkAnswers } from './check-answers.ts';
import type { ServerProcess } from './server-process.ts';
import { runWrk } from './wrk.ts';

export interface ProfileResult {
  readonly contestant: string;
  /** Microseconds of CPU per request. */
  readonly parts: Readonly<Record<string, number>>;
}

interface ProfiledServer {
  /** Of the testbed. */
  readonly folder: string;
  /** As it may stand in the name of a folder. */
  readonly name: string;
  start(nodeOptions: readonly string[]): Promise<ServerProcess>;
  createCall(server: ServerProcess): Promise<Call>;
}

const CONNECTIONS = 32;
const WARM_UP_SECONDS = 3;
const SECONDS = 8;

/** The first that fits a function's file, or, for native functions, its name. */
const PARTS: readonly (readonly [part: string, pattern: RegExp])[] = [
  ['garbage collection', /^\(garbage collector\)$/],
  ['native code outside of functions (libuv, system calls)', /^\(program\)$/],
  ['signatures and hashes (node:crypto)', /^node:(internal\/)?crypto/],
  ['writing to sockets', /^(writev|write\w+String|writeBuffer)$/],
  ['microtasks', /^runMicrotasks$/],
  ['ioredis', /node_modules\/(ioredis|@ioredis|redis-parser|denque)/],
  ['lmdb', /node_modules\/(lmdb|msgpackr|ordered-binary)/],
  ['undici', /node_modules\/undici/],
  ['other packages', /node_modules\/(@?[\w-]+)/],
  ['node:http, streams, promises and timers', /^node:/],
  ['Postern: tokens and logins', /src\/logins\//],
  ['Postern: limits', /src\/http\/limits\//],
  ['Postern: upstream servers', /src\/(servers|connections)\//],
  ['Postern: protocol, tools and rules', /src\/(mcp|catalog|control|lock|built-in)\//],
  ['Postern: store', /src\/store\//],
  ['Postern: metrics and log', /src\/telemetry\//],
  ['Postern: HTTP and helpers', /src\//],
  ['the contestant’s own file', /bench\/contestants\//],
];

export async function profileServer({
  folder,
  name,
  start,
  createCall,
}: ProfiledServer): Promise<ProfileResult['parts']> {
  const profiles = join(folder, `profile-${name}`);
  const server = await start(['--cpu-prof', `--cpu-prof-dir=${profiles}`]);
  const call = await createCall(server);
  const load = { call, expected: await checkAnswers(call), connections: CONNECTIONS };
  await runWrk(folder, { ...load, seconds: WARM_UP_SECONDS });
  const before = server.readCpuSeconds();
  const { requests } = await runWrk(folder, { ...load, seconds: SECONDS });
  const cpuMicroseconds = (server.readCpuSeconds() - before) * 1e6;
  await server.stop();
  const samples = readSamples(profiles);
  const sum = [...samples.values()].reduce((total, time) => total + time, 0);
  const parts = [...samples].sort(([, one], [, other]) => other - one);
  return Object.fromEntries(
    parts.map(([part, time]) => [part, ((time / sum) * cpuMicroseconds) / requests]),
  );
}

export function printProfile(label: string, parts: ProfileResult['parts']): void {
  console.log(`\n${label}, µs of CPU per request`);
  for (const [part, microseconds] of Object.entries(parts)) {
    console.log(`${microseconds.toFixed(1).padStart(8)}  ${part}`);
  }
}

interface CallFrame {
  readonly functionName: string;
  readonly url: string;
  /** From 0. */
  readonly lineNumber: number;
}

interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: CallFrame;
  }[];
  readonly samples: readonly number[];
  /** Microseconds. */
  readonly timeDeltas: readonly number[];
}

/** Time by part, without the start, the warm-up and idle moments. Of several threads, the busiest. */
function readSamples(folder: string): ReadonlyMap<string, number> {
  const profiles = readdirSync(folder).map((file): CpuProfile => {
    return JSON.parse(readFileSync(join(folder, file), 'utf8'));
  });
  const [busiest] = profiles.sort((a, b) => b.nodes.length - a.nodes.length);
  if (busiest === undefined) throw new Error('The server left no profile');
  const { nodes, samples, timeDeltas } = busiest;
  const partOfNode = new Map(nodes.map(({ id, callFrame }) => [id, findPart(callFrame)]));
  const times = new Map<string, number>();
  let elapsed = 0;
  for (const [at, id] of samples.entries()) {
    const delta = timeDeltas[at] ?? 0;
    elapsed += delta;
    const part = partOfNode.get(id);
    if (part === undefined || elapsed < WARM_UP_SECONDS * 1e6) continue;
    times.set(part, (times.get(part) ?? 0) + delta);
  }
  return times;
}

/** Undefined for idle moments. */
function findPart({ functionName, url, lineNumber }: CallFrame) {
  if (functionName === '(idle)') return undefined;
  const text = url === '' ? functionName : (findSource(url, lineNumber) ?? url);
  return PARTS.find(([, pattern]) => pattern.test(text))?.[0] ?? 'built-in functions';
}

const sourcesByFile = new Map<string, readonly (string | undefined)[]>();

/** The source file of a line that was built; undefined for a file that we did not build. */
function findSource(url: string, line: number): string | undefined {
  if (!url.includes('/dist/') || url.includes('/node_modules/')) return undefined;
  const sources = sourcesByFile.get(url) ?? readSources(url);
  sourcesByFile.set(url, sources);
  return sources[line];
}

/** Of each line: the build makes few files of many, and writes the name of each before its part. */
function readSources(url: string): readonly (string | undefined)[] {
  let source: string | undefined;
  return readFileSync(new URL(url), 'utf8')
    .split('\n')
    .map((line) => {
      source = /^\/\/ (src\/\S+)$/.exec(line)?.[1] ?? source;
      return source;
    });
}
