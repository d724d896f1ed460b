// `postern config --lists`: the servers are asked what they list.

import { type FetchedList, fetchList } from '../../catalog/fetch-list.ts';
import type { Config } from '../../config/config.ts';
import { GATEWAY_CALLER } from '../../mcp/upstream/upstream.ts';
import type { UpstreamConfig } from '../../mcp/upstream/upstream-config.ts';
import { dependsOnUser, needsUser } from '../../servers/transport/transports.ts';
import type { InvokedProcess } from '../command/invocation.ts';
import { stayAlive } from '../command/process-end.ts';
import { showSpinner } from '../command/spinner.ts';
import { readSetup } from '../setup/config-file/read-setup.ts';
import {
  createStderrLog,
  createTimeLimit,
  type OpenServers,
  openServers,
} from '../setup/open-servers.ts';
import { type MeasuredFile, measureFile } from './measure-file.ts';

/** A first `npx` downloads. */
const TIME_LIMIT_MS = 60_000;

/** Undefined without a configuration file that can be read. A server that does not answer is left out; the log says so. */
export async function askLists(
  config: Config,
  process: InvokedProcess,
): Promise<MeasuredFile | undefined> {
  const { configFile: path } = config.server;
  const parsed = path === undefined ? undefined : await readSetup(path, config, process.env);
  if (parsed === undefined || parsed.kind === 'problems') return undefined;
  const { setup } = parsed;
  const { servers } = setup.file;
  const log = createStderrLog(process);
  const opened = await openServers(setup.file, { env: process.env, log });
  const endSpinner = showSpinner('Asking', process);
  const tools = new Map<string, FetchedList>();

  async function ask(server: UpstreamConfig): Promise<void> {
    try {
      tools.set(server.name, await readTools(server, opened));
    } catch (cause) {
      log.warn(`Server ${server.name}: its tools could not be listed.`, { cause });
    }
  }

  try {
    await stayAlive(Promise.all(servers.filter((server) => !needsUser(server)).map(ask)));
  } finally {
    endSpinner();
    await opened.close();
  }
  const personal = new Set(servers.filter(dependsOnUser).map(({ name }) => name));
  return measureFile(setup, config, { tools, personal });
}

async function readTools(
  server: UpstreamConfig,
  { openUpstream }: OpenServers,
): Promise<FetchedList> {
  const upstream = openUpstream(server);
  const { signal, tooLate } = createTimeLimit(TIME_LIMIT_MS);
  try {
    return await Promise.race([fetchList(upstream, 'tools', GATEWAY_CALLER, signal), tooLate]);
  } finally {
    await upstream.close(0);
  }
}
