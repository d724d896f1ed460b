// Counts only time in which this process could run. While it stalls (a slow tool, a starved or stopped container) timers
// become due although nobody looked into the sockets, where the answers of Redis may lie.

/**
 * Runs `task` about every `ms`, but only after a turn of the event loop in which what lay in the sockets
 * was read: a stall counts as one tick, however long it is. Returns a function that ends it.
 */
export function startTicking(ms: number, task: () => void): () => void {
  let immediate: NodeJS.Immediate | undefined;
  // After timers come sockets, and then immediates. While other timers take long, this one can become due
  // again before any socket is read.
  const timer = setInterval(() => {
    immediate ??= setImmediate(() => {
      immediate = undefined;
      task();
    });
  }, ms).unref();

  return () => {
    clearInterval(timer);
    if (immediate !== undefined) clearImmediate(immediate);
  };
}
