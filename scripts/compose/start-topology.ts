// Starts what compose.yaml describes as plain processes, each after those that it depends on.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { assignAddresses } from './addresses.ts';
import { type Program, prepareProgram } from './programs.ts';
import { readServices, sortByDependencies } from './read-compose.ts';

export interface Topology {
  /** Where clients call. */
  readonly url: string;
  /** The address of one service. */
  getUrl(name: string): string;
  /** What it has printed of late. */
  readOutput(name: string): string;
  /** kill -9. */
  kill(name: string): Promise<void>;
  close(): Promise<void>;
}

interface Running {
  readonly child: ChildProcess;
  readOutput(): string;
}

const START_LIMIT_MS = 30_000;

export async function startTopology(
  choosePort: (published: number | undefined) => Promise<number>,
): Promise<Topology> {
  const services = await readServices();
  const addresses = await assignAddresses(services, choosePort);
  const place = await mkdtemp(join(tmpdir(), 'postern-compose-'));
  const running = new Map<string, Running>();

  function find(name: string): Running {
    const service = running.get(name);
    if (service === undefined) throw new Error(`No service ${name} runs`);
    return service;
  }

  async function close(): Promise<void> {
    for (const { child } of [...running.values()].reverse()) await end(child);
    await rm(place, { recursive: true, force: true });
  }

  try {
    for (const [name, service] of sortByDependencies(services)) {
      const folder = join(place, name);
      await mkdir(folder);
      const program = await prepareProgram(service, { name, addresses, folder });
      running.set(name, await start(name, program, folder, addresses.getPort(name)));
    }
  } catch (error) {
    await close();
    throw error;
  }
  return {
    url: `http://localhost:${addresses.getPort('haproxy')}`,
    getUrl: (name) => `http://127.0.0.1:${addresses.getPort(name)}`,
    readOutput: (name) => find(name).readOutput(),
    kill: (name) => end(find(name).child),
    close,
  };
}

/** Resolves when it listens. */
async function start(
  name: string,
  { command, args, env }: Program,
  cwd: string,
  port: number,
): Promise<Running> {
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn(command, args, {
    cwd,
    env: { PATH, HOME, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output = `${output}${text}`.slice(-10_000);
    });
  }
  const deadline = performance.now() + START_LIMIT_MS;
  while (!(await isListening(port))) {
    if (child.exitCode !== null) throw new Error(`${name} ended:\n${output}`);
    if (performance.now() > deadline) {
      await end(child);
      throw new Error(`${name} does not listen:\n${output}`);
    }
    await pause(25);
  }
  return { child, readOutput: () => output };
}

const isListening = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('error', () => resolve(false));
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
  });

function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.once('exit', () => resolve());
    child.kill('SIGKILL');
  });
}
