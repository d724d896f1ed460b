import type { Config } from '../core/config/config.ts';
import { misspeltVariables } from '../core/config/misspelt.ts';
import { createLog, type Log } from '../core/log.ts';
import { DataDirError } from '../core/store/embedded/lock.ts';
import { createGateway, type Gateway } from '../gateway.ts';
import { endWithProcess } from './end.ts';
import { listenProblem, StartError } from './start-error.ts';

/**
 * Starts the service, which ends with the process. `alsoClose` is closed after it.
 *
 * @throws StartError with the lines to print.
 */
export async function serve(config: Config, alsoClose = async () => {}): Promise<void> {
  const log = createLog(config.logLevel);
  for (const { variable, nearest } of misspeltVariables(process.env)) {
    log.warn(`${variable} is none of the settings; is it misspelt? The nearest is ${nearest}.`, {
      variable,
      nearest,
    });
  }
  let close = alsoClose;
  // From the first moment: as the first process of a container, nobody else would heed a signal.
  endWithProcess(log, () => close());
  const gateway = await open(config, log);
  close = async () => {
    await gateway.close();
    await alsoClose();
  };
  await listen(gateway, config);
}

async function open(config: Config, log: Log): Promise<Gateway> {
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
    throw new StartError([listenProblem(error, host, port)]);
  }
}
