// A worker: one of several processes that serve the same port, started by the main process (supervise.ts).
import cluster from 'node:cluster';
import { loadConfig } from '../../../config/load.ts';
import { createLog, type Log } from '../../../platform/log.ts';
import { endWithError, StartError } from '../../command-line/errors.ts';
import { handleWorkerEnd } from '../../command-line/process-end.ts';
import { openConfigFile } from '../../setup/config-file.ts';
import { loadCatalog } from '../../setup/load-catalog.ts';
import { describeProtection } from '../../setup/protection.ts';
import { runGateway } from '../serve.ts';
import { readWorkerEnvironment } from './worker-process.ts';

runWorker().catch((error: unknown) => endWithError(error, { process, console }));

async function runWorker() {
  const { worker } = cluster;
  if (worker === undefined) throw new StartError('A worker is started by postern start.');
  // The main process has read .env and the options, and passes them on.
  const config = loadConfig(process.env);
  const log = createLog(config.server.logLevel, {
    format: config.server.logFormat,
    origin: { worker: worker.id },
  });
  const catalog = await loadCatalog(config.server.catalogFile);
  const { lockCommand, served } = readWorkerEnvironment(process.env);
  const configFile = await openConfigFile(config, served);
  // Until it serves, a worker logs only errors: the main process logs everything else for all workers.
  let isStarting = true;
  const sayAfterStart =
    (write: Log['info']): Log['info'] =>
    (message, facts) => {
      if (!isStarting) write(message, facts);
    };
  await runGateway(
    config,
    {
      log: { ...log, warn: sayAfterStart(log.warn), info: sayAfterStart(log.info) },
      ...(lockCommand && { lockCommand }),
      ...(catalog && { catalog }),
      ...(config.server.metricsEnabled && {
        metrics: (await import('./worker-metrics.ts')).createWorkerMetrics(),
      }),
    },
    {
      handleEnd: (close) => handleWorkerEnd(log, close),
      configFile,
      onReload: (setup) => void process.send?.(describeProtection(setup)),
    },
  );
  isStarting = false;
}
