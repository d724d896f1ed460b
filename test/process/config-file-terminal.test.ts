// §18.1: SIGHUP in a terminal, where it also says that the terminal was closed.
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, onTestFinished, test } from 'vitest';
import { freePort } from '../support/gateway/ports.ts';
import { endPosterns, makeFolder } from '../support/gateway/process.ts';
import { isAlive } from '../support/gateway/workers.ts';

afterEach(endPosterns);

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
/** Runs a command in a terminal of its own; that of util-linux. */
const SCRIPT = '/usr/bin/script';

/** `postern start` in a terminal. */
async function startInTerminal() {
  const cwd = await makeFolder();
  await writeFile(join(cwd, 'mcp.json'), '{}');
  const port = await freePort();
  const command = `echo pid=$$; exec '${process.execPath}' '${MAIN}' start --config mcp.json --port ${port} > log.txt`;
  const log = join(cwd, 'log.txt');
  const terminal = spawn(SCRIPT, ['-qfec', command, '/dev/null'], {
    cwd,
    env: {
      PATH: process.env.PATH,
      SHELL: '/bin/sh',
      AUTH_REQUIRED: 'false',
      HOST: '127.0.0.1',
      DATA_DIR: cwd,
    },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  onTestFinished(() => void terminal.kill('SIGKILL'));
  let printed = '';
  terminal.stdout.setEncoding('utf8').on('data', (piece: string) => {
    printed += piece;
  });
  // Not in the terminal: a process that cannot write there ends by that.
  const read = () => (existsSync(log) ? readFileSync(log, 'utf8') : '');
  await expect.poll(read).toContain('"Listening."');
  const pid = Number(/pid=(\d+)/.exec(printed)?.[1]);
  onTestFinished(() => {
    if (isAlive(pid)) process.kill(pid, 'SIGKILL');
  });
  const url = `http://127.0.0.1:${port}/health`;
  const answers = () =>
    fetch(url).then(
      ({ ok }) => ok,
      () => false,
    );
  return { terminal, pid, read, answers };
}

test.skipIf(process.platform !== 'linux' || !existsSync(SCRIPT))(
  '§18.1 file: in a terminal, SIGHUP loads it anew while the terminal is there, and else ends the process',
  async () => {
    const { terminal, pid, read, answers } = await startInTerminal();
    process.kill(pid, 'SIGHUP');
    await expect.poll(read).toContain('Reloaded the configuration file.');
    expect(await answers()).toBe(true);
    terminal.kill('SIGKILL');
    await expect.poll(answers).toBe(false);
  },
);
