// Servers behind the gateway, as small as they can be, and configuration files that name them.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '../../test/support/gateway/ports.ts';
import type { Era } from '../contestants.ts';
import { LOAD_CORE, type ServerProcess, startServer } from '../server-process.ts';

/** Of either era; it runs beside the load unless other cores are given. */
export async function startUpstream(
  era: Era,
  tools = 1,
  cores = LOAD_CORE,
): Promise<ServerProcess> {
  const port = await freePort();
  return startServer({
    args: ['bench/contestants/upstream.mjs'],
    env: { PORT: String(port), ERA: era, TOOLS: String(tools) },
    port,
    cores,
  });
}

/** Arguments of the command that put these servers behind it. */
export async function nameInFile(
  folder: string,
  name: string,
  mcpServers: Readonly<Record<string, object>>,
  others: Readonly<Record<string, unknown>> = {},
): Promise<readonly string[]> {
  const file = join(folder, `${name}.json`);
  await writeFile(file, JSON.stringify({ mcpServers, builtIn: false, ...others }));
  return ['--config', file];
}
