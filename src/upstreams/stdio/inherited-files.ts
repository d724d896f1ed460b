// Open files of the gateway that would stay open in every program, whichever user it runs as. Node.js opens none so, but LMDB
// does with the file of the embedded store, which then could be read and written; who started the gateway may have, too.
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { devNull } from 'node:os';

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

/** Runs `start` with three pipes for a program, and nothing in place of each of these files. */
export function startWithout<Started>(
  inherited: readonly number[],
  start: (stdio: ['pipe', 'pipe', 'pipe']) => Started,
): Started {
  const nothing = openSync(devNull, 'r');
  const rest = Array.from({ length: Math.max(2, ...inherited) - 2 }, (_, index) =>
    inherited.includes(index + 3) ? nothing : ('ignore' as const),
  );
  const stdio: ['pipe', 'pipe', 'pipe'] = ['pipe', 'pipe', 'pipe'];
  // Node.js takes more of them than its type has.
  Object.assign(stdio, [...stdio, ...rest]);
  try {
    return start(stdio);
  } finally {
    closeSync(nothing);
  }
}
