// Open files of the gateway that would stay open in every program, whichever user it runs as. Node.js opens none so, but LMDB
// does with the file of the embedded store, which then could be read and written; who started the gateway may have, too.
import { type ChildProcessWithoutNullStreams, type SpawnOptions, spawn } from 'node:child_process';
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { devNull } from 'node:os';
import type { Command } from './run-as.ts';

const DESCRIPTORS = '/proc/self/fdinfo';
/** Of the flags that open(2) knows. */
const CLOSES_AT_EXEC = 0o2000000;

/** Their descriptors, on Linux. Looked for once, when the store is open: later there may be thousands of connections. */
export function findInheritedFiles(): readonly number[] {
  try {
    return readdirSync(DESCRIPTORS)
      .map(Number)
      .filter((descriptor) => descriptor > 2 && isInherited(descriptor));
  } catch {
    return [];
  }
}

function isInherited(descriptor: number): boolean {
  try {
    const info = readFileSync(`${DESCRIPTORS}/${descriptor}`, 'utf8');
    const [, flags] = /^flags:\s*([0-7]+)$/m.exec(info) ?? [];
    return flags !== undefined && (Number.parseInt(flags, 8) & CLOSES_AT_EXEC) === 0;
  } catch {
    // The folder itself was open while it was read.
    return false;
  }
}

/** With three pipes, and nothing in place of each of these files. @throws Error as `spawn` does. */
export function spawnWithout(
  inherited: readonly number[],
  { command, args }: Command,
  options: Pick<SpawnOptions, 'cwd' | 'env' | 'detached'>,
): ChildProcessWithoutNullStreams {
  const nothing = openSync(devNull, 'r');
  const last = Math.max(2, ...inherited);
  const stdio = Array.from({ length: last + 1 }, (_, descriptor) => {
    if (descriptor <= 2) return 'pipe' as const;
    return inherited.includes(descriptor) ? nothing : ('ignore' as const);
  });
  try {
    // The type is that of the first three.
    return spawn(command, args, { ...options, stdio: stdio as ['pipe', 'pipe', 'pipe'] });
  } finally {
    closeSync(nothing);
  }
}
