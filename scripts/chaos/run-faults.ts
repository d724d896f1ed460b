// Runs faults one after the other, or some side by side, and prints what comes of each.
import type { Counting } from './counting.ts';
import type { Fault } from './fault.ts';
import { isReached, printHead, printResult, type Result } from './report.ts';
import { createStage } from './stage.ts';

export interface RunOptions {
  readonly isShort: boolean;
  readonly scale: number;
  readonly signal: AbortSignal;
  /** Each fault in each of them, unless it is independent of the way of counting. */
  readonly countings: readonly Counting[];
  /** How many at a time. */
  readonly jobs: number;
}

/** True when every figure was reached. */
export async function runFaults(faults: readonly Fault[], options: RunOptions): Promise<boolean> {
  const waiting = [...faults];
  let allReached = true;
  printHead();

  async function work(): Promise<void> {
    for (let fault = waiting.shift(); fault; fault = waiting.shift()) {
      for (const counting of options.countings) {
        if (options.signal.aborted) return;
        const { result, hasCounting } = await runFault(fault, counting, options);
        if (result !== undefined) printResult(result);
        if (result === undefined || !isReached(result)) allReached = false;
        if (!hasCounting) break;
      }
    }
  }

  await Promise.all(Array.from({ length: options.jobs }, work));
  return allReached && !options.signal.aborted;
}

interface Run {
  /** Undefined where it could not be carried out. */
  readonly result: Result | undefined;
  readonly hasCounting: boolean;
}

/** Whatever happens, nothing is left running. */
async function runFault(fault: Fault, counting: Counting, options: RunOptions): Promise<Run> {
  const stage = createStage({ ...options, counting });
  try {
    const outcome = await Promise.race([fault.run(stage), rejectOnAbort(options.signal)]);
    const { hasCounting } = stage;
    const name = hasCounting ? `${fault.name}, ${counting}` : fault.name;
    return { result: { name, outcome, judgesTimes: !options.isShort }, hasCounting };
  } catch (error) {
    if (!options.signal.aborted) {
      console.log(`${fault.name}, ${counting}: could not be carried out`);
      console.log(error);
    }
    return { result: undefined, hasCounting: stage.hasCounting };
  } finally {
    await stage.close();
  }
}

/** Whatever a fault waits for, Ctrl-C ends it. */
const rejectOnAbort = (signal: AbortSignal): Promise<never> =>
  new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
