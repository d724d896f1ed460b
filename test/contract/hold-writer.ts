// Holds what lets one process write to an lmdb file: for everybody else the disk hangs. Until it is killed.
import { open } from 'lmdb';

const [path = ''] = process.argv.slice(2);
open({ path, noSubdir: true }).transactionSync(() => {
  process.send?.('held');
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60_000);
});
