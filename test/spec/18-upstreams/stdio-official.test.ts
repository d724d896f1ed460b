// §18.3: the official servers on stdio, as npm has them.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import type { JsonObject } from '../../../src/platform/json.ts';
import { useShared } from '../../support/lifetimes.ts';
import { createTemporaryFolder } from '../../support/temporary-folder.ts';
import { ALL_CAPABILITIES } from '../../support/upstreams/requests.ts';
import {
  callTool,
  type StdioTest,
  scripted,
  toCaller,
  toRequest,
  useStdio,
} from '../../support/upstreams/stdio.ts';

const folder = useShared(createTemporaryFolder);
const caller = toCaller('ann', { sessionId: 'session', capabilities: ALL_CAPABILITIES });

const official = (name: string, ...args: readonly string[]) => {
  const path = `../../../node_modules/@modelcontextprotocol/server-${name}/dist/index.js`;
  return { ...scripted(), args: [fileURLToPath(new URL(path, import.meta.url)), ...args] };
};

test('§18.3 stdio: the everything server echoes, tells its progress and asks', async () => {
  const stdio = useStdio({ ...official('everything'), isolation: 'user' });
  const call = (name: string, args: JsonObject, members = {}) =>
    callTool(stdio, name, args, { caller, ...members });
  expect(await call('echo', { message: 'hello' })).toBe('Echo: hello');
  const seen: unknown[] = [];
  await call(
    'trigger-long-running-operation',
    { duration: 0.2, steps: 2 },
    { onProgress: ({ progress }: JsonObject) => void seen.push(progress) },
  );
  expect(seen).toEqual([1, 2]);
  const onRequest = async () => ({ action: 'decline' });
  expect(await call('trigger-elicitation-request', {}, { onRequest })).toContain('declined');
});

test('§18.3 stdio: the everything server sees nothing of the environment of the gateway', async () => {
  const environment = { PATH: process.env.PATH, OIDC_CLIENT_SECRET: 'secret' };
  const stdio = useStdio(official('everything'), { environment });
  expect(JSON.parse(await callTool(stdio, 'get-env'))).toEqual({ PATH: process.env.PATH });
});

test('§18.3 stdio: the memory server remembers for all', async () => {
  const env = { MEMORY_FILE_PATH: join(folder.path, 'memory.jsonl') };
  const stdio = useStdio({ ...official('memory'), env });
  const entities = [{ name: 'Ann', entityType: 'person', observations: ['likes tea'] }];
  await callTool(stdio, 'create_entities', { entities }, { caller });
  expect(await callTool(stdio, 'read_graph', {}, { caller: toCaller('bob') })).toContain('tea');
});

const readAllowed = (stdio: StdioTest, members = {}) =>
  callTool(stdio, 'list_allowed_directories', {}, { caller, ...members });

/** What a client answers that works on another folder. */
const onRequest = async () => ({ roots: [{ uri: 'file:///usr' }] });

test('§18.3 stdio: the filesystem server reads its folder, which clients do not change', async () => {
  await writeFile(join(folder.path, 'note.txt'), 'read me');
  const stdio = useStdio({ ...official('filesystem', folder.path), isolation: 'user' });
  const path = join(folder.path, 'note.txt');
  expect(await callTool(stdio, 'read_text_file', { path }, { caller })).toContain('read me');
  expect(await readAllowed(stdio, { onRequest })).toContain(folder.path);
  const outside = await stdio.upstream.request(
    caller,
    toRequest('tools/call', { name: 'read_text_file', arguments: { path: '/etc/passwd' } }),
  );
  expect(outside).toMatchObject({ isError: true });
});

test('§18.3 stdio: with "roots": true a client says what its filesystem server reads', async () => {
  const config = official('filesystem', folder.path);
  const stdio = useStdio({ ...config, isolation: 'user', roots: true });
  // It asks when it starts, for this call.
  await readAllowed(stdio, { onRequest });
  await expect.poll(() => readAllowed(stdio, { onRequest })).toMatch(/:\s*\/usr$/);
});
