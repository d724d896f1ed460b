import { AuditLogError } from '../core/audit/line-sink.ts';
import type { Config } from '../core/config/config.ts';
import { DataDirError } from '../core/store/embedded/lock.ts';
import { TracingError } from '../core/tracing/open-tracing.ts';
import { createGateway, type Deps, type Gateway } from '../gateway.ts';
import type { ConfigFile } from './config-file/open-config-file.ts';
import type { Setup } from './config-file/read-setup.ts';
import { describeListenError, StartError } from './start-error.ts';

export interface RunOptions {
  /** Sees to it that `close` is called when this process is to end. */
  handleEnd(close: () => Promise<void>): void;
  /** What is closed after the service. */
  readonly alsoClose?: () => Promise<void>;
  /** What stands behind the gateway. */
  readonly configFile?: ConfigFile | undefined;
}

/** @throws StartError with the lines to print. */
export async function runGateway(
  config: Config,
  deps: Partial<Deps> & Pick<Deps, 'log'>,
  { handleEnd, alsoClose = async () => {}, configFile }: RunOptions,
): Promise<void> {
  let close = alsoClose;
  // At once: as the first process of a container, nothing else would handle a signal.
  handleEnd(() => close());
  const gateway = await openGateway(config, {
    ...deps,
    ...(configFile && toDeps(configFile.setup)),
  });
  const stopFollowing = configFile?.follow({
    load: (setup) => gateway.reload(setup),
    close: () => close(),
    log: deps.log,
  });
  close = async () => {
    stopFollowing?.();
    await gateway.close();
    await alsoClose();
  };
  await startListening(gateway, config.server);
}

const toDeps = ({ file, lock }: Setup): Partial<Deps> => ({
  file,
  ...(lock && { lock }),
  environment: process.env,
});

async function openGateway(config: Config, deps: Partial<Deps>): Promise<Gateway> {
  try {
    return await createGateway(config, deps);
  } catch (error) {
    throw isOperators(error) ? new StartError([error.message]) : error;
  }
}

const isOperators = (error: unknown): error is Error =>
  [DataDirError, AuditLogError, TracingError].some((kind) => error instanceof kind);

async function startListening(gateway: Gateway, { host, port }: Config['server']): Promise<void> {
  try {
    await gateway.listen();
  } catch (error) {
    throw new StartError([describeListenError(error, host, port)]);
  }
}
