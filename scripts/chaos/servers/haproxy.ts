// Debian's haproxy with the configuration of compose.yaml, in front of replicas on this machine.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../../test/support/gateway/ports.ts';
import { ensureCommand } from '../../../test/support/tools/debian.ts';
import { startServerProcess } from '../../../test/support/tools/server-process.ts';

export interface LoadBalancer {
  readonly url: string;
  close(): Promise<void>;
}

const EXAMPLE = new URL('../../../deploy/haproxy/haproxy.cfg', import.meta.url);

export async function startHaproxy(
  ports: readonly number[],
  checkEveryMs: number,
): Promise<LoadBalancer> {
  ensureCommand('haproxy', 'haproxy');
  const folder = await mkdtemp(join(tmpdir(), 'postern-haproxy-'));
  const config = join(folder, 'haproxy.cfg');
  const port = await freePort();
  await writeFile(config, adapt(await readFile(EXAMPLE, 'utf8'), port, ports, checkEveryMs));
  const server = await startServerProcess(
    { command: 'haproxy', args: ['-db', '-f', config] },
    port,
  );
  return {
    url: `http://127.0.0.1:${port}`,
    async close() {
      await server.end();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** The example with the addresses of this machine. */
function adapt(example: string, port: number, ports: readonly number[], checkEveryMs: number) {
  let at = 0;
  return example
    .replace(/bind \S+/, `bind 127.0.0.1:${port}`)
    .replace(/inter \S+/, `inter ${checkEveryMs}ms`)
    .replace(/^( +server \S+ )\S+/gm, (_line, start: string) => `${start}127.0.0.1:${ports[at++]}`);
}
