import type { Config } from '../../config/config.ts';
import type { GatewaySetup } from '../../gateway/configuration/gateway-file.ts';
import { createGateway, type Deps, type Gateway } from '../../gateway/gateway.ts';
import type { Catalog } from '../../mcp/catalog/catalog.ts';
import { createLog } from '../../platform/log.ts';
import { DataDirError, DataDirInUse } from '../../store/embedded/lock.ts';
import { AuditLogError } from '../../telemetry/audit/line-sink.ts';
import { TracingError } from '../../telemetry/tracing/open-tracing.ts';
import { logEnvironment } from '../command/env-file.ts';
import { chooseOtherPort, describeListenError, StartError } from '../command/errors.ts';
import { describeCommand, describeWithPort } from '../command/invocation.ts';
import { handleProcessEnd } from '../command/process-end.ts';
import type { EnvFile } from '../command/read-env-file.ts';
import { type ConfigFile, logConfigFile } from '../setup/config-file/open-config-file.ts';
import { growYoungGenerationFast } from './young-generation.ts';

interface ServeOptions extends Pick<RunOptions, 'alsoClose' | 'configFile' | 'onReload'> {
  /** Instead of the built-in one. */
  readonly catalog?: Catalog | undefined;
  readonly envFile?: EnvFile | undefined;
}

/**
 * Starts the service, which ends with the process.
 *
 * @throws StartError with the lines to print.
 */
export async function serve(config: Config, options: ServeOptions): Promise<Gateway> {
  const { catalog, envFile, ...how } = options;
  const log = createLog(config.server.logLevel, { format: config.server.logFormat });
  logEnvironment(log, envFile);
  if (how.configFile !== undefined) logConfigFile(log, how.configFile);
  return runGateway(
    config,
    { log, lockCommand: describeCommand(['lock'], process), ...(catalog && { catalog }) },
    { ...how, handleEnd: (close) => handleProcessEnd(log, close), describeWithPort },
  );
}

interface RunOptions {
  /** Sees to it that `close` is called when this process is to end. */
  handleEnd(close: () => Promise<void>): void;
  readonly alsoClose?: () => Promise<void>;
  readonly configFile?: ConfigFile | undefined;
  /** Called once the gateway serves what the configuration file says since it, or its lock, changed. */
  readonly onReload?: ((setup: GatewaySetup, changed: readonly string[]) => void) | undefined;
  readonly describeWithPort?: ((port: number) => string) | undefined;
}

/** @throws StartError with the lines to print. */
export async function runGateway(
  config: Config,
  deps: Partial<Deps> & Pick<Deps, 'log'>,
  options: RunOptions,
): Promise<Gateway> {
  const { handleEnd, alsoClose = async () => {}, configFile, onReload } = options;
  let close = alsoClose;
  // At once: as the first process of a container, nothing else would handle a signal.
  handleEnd(() => close());
  const gateway = await openGateway(
    config,
    { ...deps, ...(configFile && toDeps(configFile)) },
    options.describeWithPort,
  );
  const stopFollowing = configFile?.follow({
    load: async (setup, changed) => {
      await gateway.reload(setup);
      onReload?.(setup, changed);
    },
    findIdlePatterns: ({ file }) => gateway.findIdlePatterns(file),
    close: () => close(),
    log: deps.log,
  });
  close = async () => {
    stopFollowing?.();
    await gateway.close();
    await alsoClose();
  };
  const { host, port } = config.server;
  await gateway.listen().catch(async (error: unknown) => {
    // Why it cannot listen is what the operator has to hear.
    await gateway.close().catch(() => {});
    const place = { host, port, describeWithPort: options.describeWithPort };
    throw new StartError([describeListenError(error, place)]);
  });
  growYoungGenerationFast();
  return gateway;
}

const toDeps = ({ setup: { file, lock }, storedLock }: ConfigFile): Partial<Deps> => ({
  file,
  ...(lock && { lock }),
  storedLock,
  environment: process.env,
});

async function openGateway(
  config: Config,
  deps: Partial<Deps>,
  describeOther: RunOptions['describeWithPort'],
): Promise<Gateway> {
  try {
    return await createGateway(config, deps);
  } catch (error) {
    if (!isOperators(error)) throw error;
    const isInUse = error instanceof DataDirInUse;
    const typed = isInUse ? describeOther?.(chooseOtherPort(config.server.port)) : undefined;
    const example = typed === undefined ? '' : ` For example: DATA_DIR=./data-2 ${typed}`;
    throw new StartError([`${error.message}${example}`]);
  }
}

const isOperators = (error: unknown): error is Error =>
  [DataDirError, AuditLogError, TracingError].some((kind) => error instanceof kind);
