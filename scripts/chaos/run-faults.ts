// Runs faults one after the other, or some side by side, and prints what comes of each.
import type { Fault } from './fault.ts';
import { isReached, printHead, printResult, type Result } from './report.ts';
import { createStage } from './stage.ts';

export interface RunOptions {
  readonly isShort: boolean;
  readonly scale: number;
  readonly signal: AbortSignal;
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
      if (options.signal.aborted) return;
      const result = await runFault(fault, options);
      if (result !== undefined) printResult(result);
      if (result === undefined || !isReached(result)) allReached = false;
    }
  }

  await Promise.all(Array.from({ length: options.jobs }, work));
  return allReached && !options.signal.aborted;
}

/** Undefined where it could not be carried out; whatever happens, nothing is left running. */
async function runFault(fault: Fault, options: RunOptions): Promise<Result | undefined> {
  const stage = createStage(options);
  try {
    const outcome = await Promise.race([fault.run(stage), rejectOnAbort(options.signal)]);
    return { fault, outcome, judgesTimes: !options.isShort };
  } catch (error) {
    if (!options.signal.aborted) {
      console.log(`${fault.name}: could not be carried out`);
      console.log(error);
    }
    return undefined;
  } finally {
    await stage.close();
  }
}

/** Whatever a fault waits for, Ctrl-C ends it. */
const rejectOnAbort = (signal: AbortSignal): Promise<never> =>
  new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
