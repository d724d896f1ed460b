// Which functions of src a call executes: V8 counts the invocations of each.
import { type Profiler, Session } from 'node:inspector/promises';
import { setImmediate as waitForTurn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

/** A function where tsx has put it. */
export interface CountedFunction {
  /** Below src. */
  readonly file: string;
  readonly scriptId: string;
  readonly url: string;
  /** Empty where V8 knows none. */
  readonly name: string;
  /** In the script that tsx made of the file. */
  readonly start: number;
  readonly end: number;
  readonly calls: number;
}

export interface FunctionCounter {
  readonly session: Session;
  /** The functions that `run` executed, and its result once it was answered. */
  count(run: () => Promise<void>): Promise<readonly CountedFunction[]>;
  close(): Promise<void>;
}

const SRC = fileURLToPath(new URL('../../src/', import.meta.url));

/** tsx has each module name its functions with its own helper. */
const HELPER = '__name';

/** Turns of the event loop. */
const SETTLING_TURNS = 50;

export async function openFunctionCounter(): Promise<FunctionCounter> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  /** Counts from here on. */
  const take = async () => (await session.post('Profiler.takePreciseCoverage')).result;
  return {
    session,
    async count(run) {
      await settle();
      await take();
      await run();
      await settle();
      return (await take()).flatMap(listFunctions);
    },
    async close() {
      await session.post('Profiler.stopPreciseCoverage');
      session.disconnect();
    },
  };
}

/** Work that an answer leaves, such as its log line, is done after this. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < SETTLING_TURNS; turn += 1) await waitForTurn();
}

function listFunctions(script: Profiler.ScriptCoverage): readonly CountedFunction[] {
  const { scriptId, url } = script;
  const path = url.startsWith('file:') ? fileURLToPath(url) : '';
  if (!path.startsWith(SRC)) return [];
  const file = path.slice(SRC.length).replaceAll('\\', '/');
  return script.functions.flatMap(({ functionName: name, ranges: [range] }) =>
    range === undefined || range.count === 0 || name === HELPER
      ? []
      : [
          {
            ...{ file, scriptId, url, name, calls: range.count },
            ...{ start: range.startOffset, end: range.endOffset },
          },
        ],
  );
}

/** Those that each of the calls executed. */
export function intersect(
  counts: readonly (readonly CountedFunction[])[],
): readonly CountedFunction[] {
  const [first = [], ...rest] = counts;
  const others = rest.map((functions) => new Set(functions.map(identify)));
  return first.filter((counted) => others.every((other) => other.has(identify(counted))));
}

const identify = ({ scriptId, start, end }: CountedFunction): string =>
  `${scriptId}:${start}-${end}`;
