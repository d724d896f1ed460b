// SIGHUP has two meanings: load the configuration anew, and: the terminal was closed.
import { closeSync, openSync } from 'node:fs';

/**
 * Calls `onReload` at SIGHUP from now on. When it came because the terminal was closed in which this
 * process was started, the process ends, as it would without a listener.
 */
export function onHangUp(onReload: () => void): void {
  const isInTerminal = process.stdin.isTTY === true;

  process.on('SIGHUP', () => {
    if (isInTerminal && !hasTerminal()) process.kill(process.pid, 'SIGTERM');
    else onReload();
  });
}

/** Whether the process still has the terminal that controls it. */
function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return true;
  } catch {
    return false;
  }
}
