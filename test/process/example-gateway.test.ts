// The program of docs/examples/gateway.ts, as its page says to start it.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { statelessRequest } from '../support/clients/stateless.ts';
import { freePort } from '../support/gateway/ports.ts';
import { endPosterns, makeFolder } from '../support/gateway/process.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const children: ChildProcess[] = [];

afterAll(async () => {
  for (const child of children) child.kill('SIGKILL');
  await endPosterns();
});

async function start(env: Readonly<Record<string, string>>) {
  const port = await freePort();
  const child = spawn(process.execPath, ['--import', 'tsx', 'docs/examples/gateway.ts'], {
    cwd: ROOT,
    env: {
      PATH: process.env.PATH,
      HOST: '127.0.0.1',
      PORT: String(port),
      DATA_DIR: await makeFolder(),
      ...env,
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  children.push(child);
  return { child, url: `http://127.0.0.1:${port}`, ended: once(child, 'close') };
}

test.each(['SIGTERM', 'SIGINT'] as const)(
  '§2.4 examples: gateway.ts serves its own catalogue, and ends on %s',
  async (signal) => {
    const { child, url, ended } = await start({ AUTH_REQUIRED: 'false' });
    const isUp = () =>
      fetch(`${url}/health`).then(
        ({ ok }) => ok,
        () => false,
      );
    await expect.poll(isUp, { timeout: 30_000 }).toBe(true);
    const params = { name: 'deployed_version', arguments: { service: 'search' } };
    const { message, headers } = statelessRequest('tools/call', params);
    const answer = await fetch(`${url}/mcp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(message),
    });
    expect(await answer.json()).toMatchObject({
      result: { content: [{ type: 'text', text: 'search runs 5.0.3.' }] },
    });
    child.kill(signal);
    expect(await ended).toEqual([0, null]);
  },
);

test('§2.4 examples: gateway.ts says which setting is wrong', async () => {
  const { child, ended } = await start({ AUTH_REQUIRED: 'false', LOG_LEVEL: 'loud' });
  let stderr = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  expect(await ended).toEqual([1, null]);
  expect(stderr).toMatch(/^LOG_LEVEL\b.*loud.*\n$/);
});
