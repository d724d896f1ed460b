// Single keys that postern dev knows, where it has a terminal to itself.
import { execFileSync } from 'node:child_process';

const CTRL_C = '\u0003';
const CTRL_Z = '\u001a';

/**
 * Whether somebody at a terminal can press keys for this process. One that was started with `&` is stopped by the system when
 * it asks for them.
 */
export function hasKeyboard(): boolean {
  if (!process.stdin.isTTY || !process.stdout.isTTY) return false;
  try {
    const args = ['-o', 'stat=', '-p', String(process.pid)];
    return execFileSync('ps', args, { encoding: 'utf8' }).includes('+');
  } catch {
    return false;
  }
}

/** Until the process ends; the terminal is then as it was. In this mode Ctrl+C is a key like others. */
export function listenToKeys(onKey: (key: string) => void, onInterrupt: () => void): void {
  const { stdin } = process;

  function take(): void {
    stdin.setRawMode(true);
    stdin.resume();
  }

  function giveBack(): void {
    stdin.setRawMode(false);
    stdin.pause();
  }

  stdin.setEncoding('utf8').on('data', (pressed: string) => {
    if (pressed === CTRL_C) onInterrupt();
    else if (pressed === CTRL_Z) {
      giveBack();
      // All of the job stops, as it would without us.
      process.kill(0, 'SIGTSTP');
    } else onKey(pressed);
  });
  process.on('SIGCONT', () => {
    if (hasKeyboard()) take();
  });
  process.on('exit', giveBack);
  take();
}
