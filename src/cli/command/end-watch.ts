// A process that a disk, a lock or a name server holds up in native code cannot end itself: Node.js waits for all threads
// when it exits. Another one, started when this one is to end, then kills it and says what it was at.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Log, LogFormat } from '../../platform/log.ts';
import { getModuleUrl } from '../../platform/own-files.ts';

/** What this process does now, as the object of "is held up by", and for how many milliseconds it may. */
export type NoteStep = (step: string, limitMs: number) => void;

const SCRIPT = fileURLToPath(getModuleUrl('cli/command/kill-late'));

/** The first step starts the other process, which ends with this one. */
export function createEndWatch(log: Log, format: LogFormat): NoteStep {
  let send: NoteStep | undefined;

  function start(): NoteStep {
    try {
      const child = fork(SCRIPT, [String(process.pid), format], {
        // In a group of its own: Ctrl+C reaches all processes of a terminal's.
        detached: true,
        // Not those of a debugger, whose port is taken.
        execArgv: process.execArgv.filter((option) => !option.startsWith('--inspect')),
        env: { ...process.env, NODE_OPTIONS: '' },
        stdio: ['ignore', 'inherit', 'ignore', 'ipc'],
      });
      child.on('error', warn);
      return (step, limitMs) => void child.send({ step, limitMs }, () => {});
    } catch (cause) {
      warn(cause);
      return () => {};
    }
  }

  function warn(cause: unknown): void {
    log.warn(
      'No process could be started to kill this one, should it not end. See that it does, and look at its limit of processes.',
      { cause },
    );
  }

  return (step, limitMs) => {
    send ??= start();
    send(step, limitMs);
  };
}
