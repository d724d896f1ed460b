// One process per DATA_DIR: lmdb is open in it, and limits and listeners are in its memory.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { rename, rm, stat } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { join, relative } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { getErrorCode } from '../../platform/error-code.ts';

/** A wrong DATA_DIR: one line for the operator, no stack. */
export class DataDirError extends Error {
  override readonly name = 'DataDirError';
}

/** Another process has it. */
export class DataDirInUse extends DataDirError {}

/** The length that every system allows for the path of a socket; a longer one would be cut in silence. */
const PATH_BYTES = 103;
/** Others that found the same dead lock have put theirs there, or seen a new one, by then, on a busy machine as well. */
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
  return () => new Promise((resolve) => server.close(() => resolve()));
}

/**
 * Over a dead lock two may start at the same moment: the one whose socket stays has the folder. Each has its own listen under
 * a name of its own first, by which it can be told from the others'. Undefined for those that do not have the folder.
 */
async function takeOver(server: Server, path: string) {
  // Not longer than the lock's own name, or its path could be too long.
  const ownPath = path.replace(/sock$/, randomBytes(2).toString('hex'));
  const close = () => new Promise<void>((resolve) => server.close(() => resolve()));
  await listen(server, ownPath);
  server.unref();
  const ours = await readInode(ownPath);
  const isOurs = async () => ours !== undefined && ours === (await readInode(path));
  // Whoever was first may have it already.
  if (await isAbandoned(path)) {
    await rename(ownPath, path);
    await pause(SETTLE_MS);
  }
  if (!(await isOurs())) {
    await close();
    return undefined;
  }
  return async function release() {
    // The server knows the socket by its first name, and removes nothing.
    if (await isOurs()) await rm(path, { force: true });
    await close();
  };
}

const readInode = (path: string) =>
  stat(path).then(
    ({ ino }) => ino,
    () => undefined,
  );

/** The relative form often is the shorter one. */
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
