/**
 * Returns a function that runs tasks at the end of this turn of the event loop, one after the other. What writes to sockets
 * belongs there: between the work on two requests a write costs several times as much, since it wakes up whoever reads,
 * and finds the processor's caches full of other code.
 */
export function createTurnEnd(): (task: () => void) => void {
  let waiting: (() => void)[] = [];

  function runAll(): void {
    const tasks = waiting;
    waiting = [];
    for (const task of tasks) task();
  }

  return function runAtTurnEnd(task) {
    if (waiting.push(task) === 1) setImmediate(runAll);
  };
}
