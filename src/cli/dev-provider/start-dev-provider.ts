import { createServer, type Server } from 'node:http';
import type { Config } from '../../config/config.ts';
import { getErrorCode } from '../../platform/error-code.ts';
import { StartError } from '../command/errors.ts';
import { createProviderOf } from './provider.ts';

/**
 * Beside the gateway of this configuration, on a port of its own.
 *
 * @throws StartError
 */
export async function startDevProvider(
  config: Config,
  audience: readonly string[],
  clientId: string,
) {
  const server = createServer();
  const issuer = `http://localhost:${await listenOnFreePort(server, config.server.port + 1)}`;
  const handleRequest = await createProviderOf(config, issuer, audience, clientId).catch(
    explainMissing,
  );
  server.on('request', handleRequest);
  async function close(): Promise<void> {
    server.close();
    server.closeAllConnections();
  }
  return { issuer, close };
}

function explainMissing(error: unknown): never {
  if (getErrorCode(error) !== 'ERR_MODULE_NOT_FOUND') throw error;
  throw new StartError([
    'The development provider is missing: npm did not install the optional package oidc-provider (--omit=optional, or the download failed). Install again with --include=optional, set OIDC_ISSUER to a provider of yours, or set AUTH_REQUIRED=false to run without login.',
  ]);
}

const ATTEMPTS = 20;
const HIGHEST_PORT = 65_535;

/** Listens on 127.0.0.1 at the first free port from `port` on; resolves to it. */
async function listenOnFreePort(server: Server, port: number): Promise<number> {
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
