// One process per DATA_DIR: lmdb is open in it, and limits and listeners are in its memory.
import { rm, stat } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { join, relative } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { getErrorCode } from '../../errors/error-code.ts';

/** A wrong DATA_DIR: one line for the operator, no stack. */
export class DataDirError extends Error {
  override readonly name = 'DataDirError';
}

/** What every system allows for the path of a socket; a longer one would be cut in silence. */
const PATH_BYTES = 103;
/** Others that found the same dead lock have replaced it, or seen the new one, by then, on a busy machine as well. */
const SETTLE_MS = 500;

/**
 * Holds `folder` until released. The lock is a listening socket: the system takes it back when
 * its process dies, however it dies, and it works across containers that share a volume, where
 * process ids mean nothing.
 *
 * @throws DataDirError when another process holds it.
 */
export async function lockFolder(folder: string): Promise<() => Promise<void>> {
  const path = socketPath(folder);
  const server = createServer((socket) => socket.destroy());
  const inUse = () =>
    new DataDirError(
      `DATA_DIR: the folder ${folder} is in use by another process (is another postern running?). Stop it, or set DATA_DIR and PORT for a second one.`,
    );
  try {
    await listen(server, path);
  } catch (cause) {
    if (getErrorCode(cause) !== 'EADDRINUSE') throw cause;
    if (!(await isAbandoned(path))) throw inUse();
    await rm(path, { force: true });
    if (!(await takeOver(server, path))) throw inUse();
  }
  server.unref();
  return () => new Promise((resolve) => server.close(() => resolve()));
}

/** Over a dead lock two may start at the same moment: the one whose socket stays has the folder. */
async function takeOver(server: Server, path: string): Promise<boolean> {
  try {
    await listen(server, path);
  } catch (cause) {
    if (getErrorCode(cause) === 'EADDRINUSE') return false;
    throw cause;
  }
  const ours = await readInode(path);
  await pause(SETTLE_MS);
  if (ours !== undefined && ours === (await readInode(path))) return true;
  // Not closed: that would remove the other's socket. It goes when this process ends.
  server.unref();
  return false;
}

const readInode = (path: string): Promise<number | undefined> =>
  stat(path).then(
    ({ ino }) => ino,
    () => undefined,
  );

/** The relative form often is the shorter one. */
function socketPath(folder: string): string {
  const absolute = join(folder, 'lock.sock');
  const fromHere = relative('', absolute);
  const path = fromHere.length < absolute.length ? fromHere : absolute;
  if (Buffer.byteLength(path) <= PATH_BYTES) return path;
  throw new DataDirError(
    `DATA_DIR: the path ${folder} is too long for the lock in it (${PATH_BYTES} bytes at most, from the working directory or from the root). Choose a shorter one.`,
  );
}

const listen = (server: Server, path: string): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, () => {
      server.off('error', reject);
      resolve();
    });
  });

/** Nobody listens. Any other failure to connect (no permission, say) is no proof of that. */
const isAbandoned = (path: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(false);
    });
    socket.once('error', (error) => resolve(NOBODY_LISTENS.has(getErrorCode(error))));
  });

const NOBODY_LISTENS: ReadonlySet<unknown> = new Set(['ECONNREFUSED', 'ENOENT']);
