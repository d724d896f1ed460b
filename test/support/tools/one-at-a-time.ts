// Work that only one of all test processes may do at a time.
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

/**
 * Runs `work` when no other process runs work of the same name. The lock is a listening socket
 * without a file: whoever waits for it hears when its holder is done, or has died.
 */
export async function oneAtATime<Result>(
  name: string,
  work: () => Promise<Result>,
): Promise<Result> {
  const path = `\0postern-${name}`;
  const waiting = new Set<Socket>();
  const lock = createServer((socket) => {
    waiting.add(socket);
    socket.on('error', () => {});
  });
  while (!(await held(lock, path))) await released(path);
  try {
    return await work();
  } finally {
    lock.close();
    for (const socket of waiting) socket.destroy();
  }
}

function held(lock: Server, path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const refused = (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(false) : reject(error);
    lock.once('error', refused);
    lock.listen(path, () => {
      lock.off('error', refused);
      resolve(true);
    });
  });
}

async function released(path: string): Promise<void> {
  const socket = connect(path);
  socket.on('error', () => {});
  await once(socket, 'close');
}
