// Locks DATA_DIR for one process: its lmdb must be open only once, and limits and listeners are in memory.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { rename, rm, stat } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { join, relative } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { getErrorCode } from '../../platform/error-code.ts';

/** An unusable DATA_DIR: a one-line message for the operator, without a stack. */
export class DataDirError extends Error {
  override readonly name = 'DataDirError';
}

/** Another process holds the lock. */
export class DataDirInUse extends DataDirError {}

/** The maximum length of a socket's path on all systems; a longer path would be truncated silently. */
const PATH_BYTES = 103;
/**
 * By then, other processes that found the same dead lock have moved their socket there, or noticed the new one, even on a busy
 * machine.
 */
const SETTLE_MS = 500;

/**
 * Holds `folder` until released. The lock is a listening socket: the system removes the listener when its process dies, however
 * it dies. It also works across containers that share a volume, where process IDs are meaningless.
 *
 * @throws DataDirError if another process holds it.
 */
export async function lockFolder(folder: string): Promise<() => Promise<void>> {
  const path = socketPath(folder);
  const server = createServer((socket) => socket.destroy());
  try {
    await listen(server, path);
  } catch (cause) {
    if (getErrorCode(cause) !== 'EADDRINUSE') throw cause;
    const release = (await isAbandoned(path)) ? await takeOver(server, path) : undefined;
    if (release !== undefined) return release;
    throw new DataDirInUse(
      `DATA_DIR: the folder ${folder} is in use by another process (is another postern running?). Stop it, or set DATA_DIR and PORT for a second one.`,
    );
  }
  server.unref();
  return () => closeServer(server);
}

const closeServer = (server: Server) =>
  new Promise<void>((resolve) => server.close(() => resolve()));

/**
 * Takes over a dead lock. If two processes do this at the same moment, the one whose socket remains holds the folder. Each first
 * listens under its own name, which identifies its socket. Undefined for a process that does not get the folder.
 */
async function takeOver(server: Server, path: string) {
  // Not longer than the lock's own name, or the path could become too long.
  const ownPath = path.replace(/sock$/, randomBytes(2).toString('hex'));
  await listen(server, ownPath);
  server.unref();
  const ours = await readInode(ownPath);
  const isOurs = async () => ours !== undefined && ours === (await readInode(path));
  // A faster process may hold the lock already.
  if (await isAbandoned(path)) {
    await rename(ownPath, path);
    await pause(SETTLE_MS);
  }
  if (!(await isOurs())) {
    await closeServer(server);
    return undefined;
  }
  return async function release() {
    // The server knows the socket by its first name, and does not remove the new one.
    if (await isOurs()) await rm(path, { force: true });
    await closeServer(server);
  };
}

const readInode = (path: string) =>
  stat(path).then(
    ({ ino }) => ino,
    () => undefined,
  );

/** The relative form is often shorter. */
function socketPath(folder: string) {
  const absolute = join(folder, 'lock.sock');
  const fromHere = relative('', absolute);
  const path = fromHere.length < absolute.length ? fromHere : absolute;
  if (Buffer.byteLength(path) <= PATH_BYTES) return path;
  throw new DataDirError(
    `DATA_DIR: the path ${folder} is too long for the lock in it (${PATH_BYTES} bytes at most, from the working directory or from the root). Choose a shorter one.`,
  );
}

const listen = (server: Server, path: string) => once(server.listen(path), 'listening');

/** True if no process listens. Any other connection failure (no permission, for example) does not prove that. */
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
