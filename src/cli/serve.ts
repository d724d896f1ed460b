import type { Config } from '../core/config/config.ts';
import { createLog } from '../core/log.ts';
import { DataDirError } from '../core/store/embedded/lock.ts';
import { createGateway, type Gateway } from '../gateway.ts';
import { StartError } from './start-error.ts';

/**
 * Starts the service and ends with the process: SIGTERM and SIGINT drain, a second one ends at
 * once.
 *
 * @throws StartError with the lines to print.
 */
export async function serve(config: Config, beforeExit = async () => {}): Promise<void> {
  const log = createLog(config.logLevel);
  const gateway = await open(config, log);
  await listen(gateway, config);

  let ending = false;
  const end = (signal: NodeJS.Signals): void => {
    if (ending) process.exit(signal === 'SIGINT' ? 130 : 143);
    ending = true;
    log.info('Shutting down; a second signal ends at once.', { signal });
    gateway
      .close()
      .then(beforeExit)
      .then(
        () => process.exit(0),
        (cause: unknown) => {
          log.error('The shutdown failed.', { cause });
          process.exit(1);
        },
      );
  };
  process.on('SIGTERM', end);
  process.on('SIGINT', end);
  const crash = (cause: unknown): void => {
    log.error('An error that nobody expected; the process ends. Please report it.', { cause });
    process.exit(1);
  };
  process.on('uncaughtException', crash);
  process.on('unhandledRejection', crash);
}

async function open(config: Config, log: ReturnType<typeof createLog>): Promise<Gateway> {
  try {
    return await createGateway(config, { log });
  } catch (error) {
    if (error instanceof DataDirError) throw new StartError([error.message]);
    throw error;
  }
}

async function listen(gateway: Gateway, { host, port }: Config): Promise<void> {
  try {
    await gateway.listen();
  } catch (error) {
    await gateway.close();
    throw new StartError([listenProblem(error, host, port)]);
  }
}

function listenProblem(error: unknown, host: string, port: number): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  switch (code) {
    case 'EADDRINUSE':
      return `PORT: ${port} on ${host} is taken by another process. Stop it, or set PORT to a free one.`;
    case 'EACCES':
      return `PORT: ${port} needs more rights than this process has. Set PORT to 1024 or above.`;
    default:
      return `HOST: cannot listen on ${host}:${port} (${code ?? String(error)}). Set HOST to an address of this machine.`;
  }
}
