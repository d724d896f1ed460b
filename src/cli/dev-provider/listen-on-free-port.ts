import type { Server } from 'node:http';
import { getErrorCode } from '../../platform/error-code.ts';
import { StartError } from '../command/start-error.ts';

const ATTEMPTS = 20;
const HIGHEST_PORT = 65_535;

/** Listens on 127.0.0.1 at the first free port from `port` on; resolves to it. */
export async function listenOnFreePort(server: Server, port: number): Promise<number> {
  const last = Math.min(port + ATTEMPTS - 1, HIGHEST_PORT);
  for (let candidate = port; candidate <= last; candidate += 1) {
    if (await tryListen(server, candidate)) return candidate;
  }
  throw new StartError([
    `PORT: the development provider needs a free port among the ${ATTEMPTS} after PORT, and all of them are taken. Set another PORT.`,
  ]);
}

/** False when the port is taken. */
const tryListen = (server: Server, port: number): Promise<boolean> =>
  new Promise((resolve, reject) => {
    const onError = (error: Error) =>
      getErrorCode(error) === 'EADDRINUSE' ? resolve(false) : reject(error);
    server.once('error', onError);
    server.listen(port, '127.0.0.1', () => {
      server.off('error', onError);
      resolve(true);
    });
  });
