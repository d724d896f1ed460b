// SIGHUP has two meanings: load the configuration anew, and: the terminal was closed.
import { closeSync, openSync } from 'node:fs';

export interface HangUpActions {
  readonly reload: () => void;
  /** What to do before the process ends. */
  readonly close: () => Promise<void>;
}

/**
 * From now on SIGHUP reloads. Where it came because the terminal was closed in which this process was
 * started, the process ends by it, as it would without a listener, but closes before.
 */
export function onHangUp({ reload, close }: HangUpActions): void {
  const isInTerminal = process.stdin.isTTY === true;

  function handleSignal(): void {
    if (isInTerminal && !hasTerminal()) void end();
    else reload();
  }

  async function end(): Promise<void> {
    process.off('SIGHUP', handleSignal);
    // There is nobody to tell.
    await close().catch(() => {});
    // Not by process.exit: Node.js 20 aborts there when it finds its terminal gone.
    process.kill(process.pid, 'SIGHUP');
  }

  process.on('SIGHUP', handleSignal);
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
