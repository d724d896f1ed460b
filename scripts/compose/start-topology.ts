// Starts the services in compose.yaml as plain processes, each after those that it depends on.
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ServerProcess, startServerProcess } from '../../test/support/tools/server-process.ts';
import { assignAddresses } from './addresses.ts';
import { prepareProgram } from './programs.ts';
import { readServices, sortByDependencies } from './read-compose.ts';

export interface Topology {
  /** Where clients call. */
  readonly url: string;
  /** The address of one service. */
  getUrl(name: string): string;
  /** Its recent output. */
  readOutput(name: string): string;
  /** kill -9. */
  kill(name: string): Promise<void>;
  close(): Promise<void>;
}

export async function startTopology(
  choosePort: (published: number | undefined) => Promise<number>,
): Promise<Topology> {
  const services = await readServices();
  const addresses = await assignAddresses(services, choosePort);
  const place = await mkdtemp(join(tmpdir(), 'postern-compose-'));
  const running = new Map<string, ServerProcess>();

  function find(name: string): ServerProcess {
    const service = running.get(name);
    if (service === undefined) throw new Error(`No service ${name} runs`);
    return service;
  }

  async function close(): Promise<void> {
    for (const server of [...running.values()].reverse()) await server.end();
    await rm(place, { recursive: true, force: true });
  }

  try {
    for (const [name, service] of sortByDependencies(services)) {
      const folder = join(place, name);
      await mkdir(folder);
      const program = await prepareProgram(service, { name, addresses, folder });
      const port = addresses.getPort(name);
      running.set(name, await startServerProcess({ ...program, cwd: folder }, port));
    }
  } catch (error) {
    await close();
    throw error;
  }
  return {
    url: `http://localhost:${addresses.getPort('haproxy')}`,
    getUrl: (name) => `http://127.0.0.1:${addresses.getPort(name)}`,
    readOutput: (name) => find(name).readOutput(),
    kill: (name) => find(name).end(),
    close,
  };
}
