import type { Config } from '../core/config/config.ts';
import { describeMisspelled, findMisspelledVariables } from '../core/config/misspelled.ts';
import { createLog } from '../core/log.ts';
import { DataDirError } from '../core/store/embedded/lock.ts';
import type { Catalog } from '../features/mcp/catalog/catalog.ts';
import { createGateway, type Deps, type Gateway } from '../gateway.ts';
import { type EnvFile, listSettings } from './env-file.ts';
import { handleProcessEnd } from './process-end.ts';
import { describeListenError, StartError } from './start-error.ts';

export interface ServeOptions {
  /** Instead of the built-in one. */
  readonly catalog?: Catalog | undefined;
  readonly envFile?: EnvFile | undefined;
  /** What is closed after the service. */
  readonly alsoClose?: () => Promise<void>;
}

/**
 * Starts the service, which ends with the process.
 *
 * @throws StartError with the lines to print.
 */
export async function serve(config: Config, options: ServeOptions = {}): Promise<void> {
  const { catalog, envFile, alsoClose = async () => {} } = options;
  const log = createLog(config.server.logLevel);
  if (envFile !== undefined) {
    const { path } = envFile;
    log.info('Read .env. Variables that are set in the environment take precedence.', {
      path,
      variables: listSettings(envFile),
    });
  }
  for (const misspelled of findMisspelledVariables(process.env)) {
    const { variable, nearest } = misspelled;
    log.warn(describeMisspelled(misspelled), { variable, nearest });
  }
  let close = alsoClose;
  // At once: as the first process of a container, nothing else would handle a signal.
  handleProcessEnd(log, () => close());
  const gateway = await openGateway(config, { log, ...(catalog && { catalog }) });
  close = async () => {
    await gateway.close();
    await alsoClose();
  };
  await startListening(gateway, config.server);
}

async function openGateway(config: Config, deps: Partial<Deps>): Promise<Gateway> {
  try {
    return await createGateway(config, deps);
  } catch (error) {
    if (error instanceof DataDirError) throw new StartError([error.message]);
    throw error;
  }
}

async function startListening(gateway: Gateway, { host, port }: Config['server']): Promise<void> {
  try {
    await gateway.listen();
  } catch (error) {
    throw new StartError([describeListenError(error, host, port)]);
  }
}
