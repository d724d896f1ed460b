// Decisions 1: one process per DATA_DIR.
import { rm } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { join, relative } from 'node:path';

/** A wrong DATA_DIR: one line for the operator, no stack. */
export class DataDirError extends Error {
  override readonly name = 'DataDirError';
}

/**
 * Holds `folder` until released. The lock is a listening socket: the system takes it back when
 * its process dies, however it dies, and it works across containers that share a volume, where
 * process ids mean nothing. (Two processes that start in the same instant over a dead lock may
 * both get it; lmdb itself keeps their data whole.)
 *
 * @throws DataDirError when another process holds it.
 */
export async function lockFolder(folder: string): Promise<() => Promise<void>> {
  const path = socketPath(folder);
  const server = createServer((socket) => socket.end());
  try {
    await listen(server, path);
  } catch (cause) {
    if (!isTaken(cause)) throw cause;
    if (await answers(path)) {
      throw new DataDirError(
        `DATA_DIR: the folder ${folder} is in use by another process. Stop it, or set DATA_DIR to a folder of its own.`,
      );
    }
    await rm(path, { force: true });
    await listen(server, path);
  }
  server.unref();
  return () => new Promise((resolve) => server.close(() => resolve()));
}

/** Socket paths are limited to about 100 bytes; the relative form often is the shorter one. */
function socketPath(folder: string): string {
  const absolute = join(folder, 'lock.sock');
  const fromHere = relative('', absolute);
  return fromHere.length < absolute.length ? fromHere : absolute;
}

const listen = (server: Server, path: string): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, () => {
      server.off('error', reject);
      resolve();
    });
  });

const answers = (path: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });

const isTaken = (cause: unknown): boolean =>
  cause instanceof Error && 'code' in cause && cause.code === 'EADDRINUSE';
