import type { Config } from '../../config/config.ts';
import type { Setup } from '../../gateway/configuration/gateway-file.ts';
import { createGateway, type Deps, type Gateway } from '../../gateway/gateway.ts';
import type { Catalog } from '../../mcp/catalog/catalog.ts';
import { DataDirError, DataDirInUse } from '../../store/embedded/lock.ts';
import { AuditLogError } from '../../telemetry/audit/open-audit.ts';
import { TracingError } from '../../telemetry/tracing/open-tracing.ts';
import { chooseOtherPort, describeListenError, StartError } from '../command-line/errors.ts';
import { describeCommandHere, describeWithPort } from '../command-line/invocation.ts';
import { handleProcessEnd } from '../command-line/process-end.ts';
import type { EnvFile } from '../command-line/read-input.ts';
import { type ConfigFile, openServiceLog } from '../setup/config-file.ts';
import { tuneCollector } from './tune-collector.ts';

/**
 * Starts the service, which runs until the process ends.
 *
 * @throws StartError with the lines to print.
 */
export async function serve(
  config: Config,
  catalog: Catalog | undefined,
  envFile: EnvFile | undefined,
  life: Omit<GatewayLife, 'handleEnd' | 'describeWithPort'>,
): Promise<Gateway> {
  const log = openServiceLog(config, envFile, life.configFile);
  return runGateway(
    config,
    { log, lockCommand: describeCommandHere(['lock'], process), ...(catalog && { catalog }) },
    { ...life, handleEnd: (close) => handleProcessEnd(log, close), describeWithPort },
  );
}

/** How a gateway starts and ends within its process. */
interface GatewayLife {
  /** Makes the process call `close` before it ends. */
  handleEnd(close: () => Promise<void>): void;
  readonly alsoClose?: () => Promise<void>;
  readonly configFile?: ConfigFile | undefined;
  /** Called when the gateway serves a changed configuration file or lock. */
  readonly onReload?: ((setup: Setup, changed: readonly string[]) => void) | undefined;
  readonly isDevelopment?: boolean;
  readonly describeWithPort?: ((port: number) => string) | undefined;
}

/** @throws StartError with the lines to print. */
export async function runGateway(
  config: Config,
  given: Partial<Deps> & Pick<Deps, 'log'>,
  life: GatewayLife,
): Promise<Gateway> {
  const {
    handleEnd,
    alsoClose = async () => {},
    configFile,
    onReload,
    isDevelopment = false,
  } = life;
  let close = alsoClose;
  // Immediately: in a container's first process, signals have no default handler.
  handleEnd(() => close());
  const gateway = await createGateway(config, {
    ...given,
    isDevelopment,
    ...(configFile && {
      file: configFile.setup.file,
      ...(configFile.setup.lock && { lock: configFile.setup.lock }),
      storedLock: configFile.storedLock,
      environment: process.env,
    }),
  }).catch((error: unknown) => {
    if (!isOperators(error)) throw error;
    const isInUse = error instanceof DataDirInUse;
    const typed = isInUse
      ? life.describeWithPort?.(chooseOtherPort(config.server.port))
      : undefined;
    const example = typed === undefined ? '' : ` For example: DATA_DIR=./data-2 ${typed}`;
    throw new StartError(`${error.message}${example}`);
  });
  const stopFollowing = configFile?.follow({
    load: async (setup, changed) => {
      await gateway.reload(setup);
      onReload?.(setup, changed);
    },
    findIdlePatterns: ({ file }) => gateway.findIdlePatterns(file),
    close: () => close(),
    log: given.log,
  });
  close = async () => {
    stopFollowing?.();
    await gateway.close();
    await alsoClose();
  };
  await gateway.listen().catch(async (error: unknown) => {
    // The reason why it cannot listen matters more to the operator.
    await gateway.close().catch(() => {});
    throw new StartError(describeListenError(error, config.server, life.describeWithPort));
  });
  tuneCollector();
  return gateway;
}

const isOperators = (error: unknown): error is Error =>
  [DataDirError, AuditLogError, TracingError].some((kind) => error instanceof kind);
