// Debian's haproxy with the configuration of compose.yaml, in front of replicas on this machine.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { freePort } from '../../../test/support/gateway/ports.ts';
import { ensureCommand } from '../../../test/support/tools/debian.ts';

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
  const child = spawn('haproxy', ['-db', '-f', config], { stdio: ['ignore', 'ignore', 'pipe'] });
  let output = '';
  child.stderr.on('data', (chunk: Buffer) => {
    output += chunk;
  });
  await waitUntilListening(port, child, () => output);
  return {
    url: `http://127.0.0.1:${port}`,
    async close() {
      await end(child);
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

async function waitUntilListening(port: number, child: ChildProcess, readOutput: () => string) {
  for (let attempt = 0; attempt < 200; attempt += 1) {
    if (child.exitCode !== null) throw new Error(`haproxy ended:\n${readOutput()}`);
    if (await isListening(port)) return;
    await pause(25);
  }
  throw new Error('haproxy does not listen');
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
