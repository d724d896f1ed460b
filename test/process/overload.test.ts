// A process that is asked for several times of what it can serve.
import { afterEach, expect, test } from 'vitest';
import { writeFileIn } from '../support/catalogs/catalog-files.ts';
import { endPosterns, makeFolder, startPostern } from '../support/gateway/process.ts';
import { openSession, rpc } from '../support/gateway/process-http.ts';

const LONG = { timeout: 30_000 };

const CATALOG = `
import { createLocalCatalog, defineTool } from 'postern/define';

const costly = defineTool({
  name: 'costly',
  description: 'Takes 20 ms of CPU.',
  inputSchema: { type: 'object' },
  run() {
    const until = performance.now() + 20;
    while (performance.now() < until);
    return { content: [] };
  },
});
export default createLocalCatalog({ tools: [costly] });
`;

afterEach(endPosterns);

test('§12 overload: some calls are refused, the others answered, /health is served; then all is well again', async () => {
  const cwd = await makeFolder();
  await writeFileIn(cwd, 'catalog.mjs', CATALOG);
  const env = {
    AUTH_REQUIRED: 'false',
    MCP_RATE_LIMIT_MAX: '1000000',
    MCP_GLOBAL_RATE_LIMIT_MAX: '1000000',
  };
  const postern = await startPostern(env, { cwd, args: ['start', '--catalog', 'catalog.mjs'] });
  const session = await openSession(postern.url);
  const call = {
    ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
    params: { name: 'costly', arguments: {} },
  };

  // Node.js accepts one connection in each turn of the event loop, so they are opened before.
  const health = () => fetch(`${postern.url}/health`).then((answer) => answer.arrayBuffer());
  await Promise.all(Array.from({ length: 200 }, health));

  const counts = new Map<number, number>();
  const retryAfter = new Set<string | null>();
  let isOver = false;
  const callers = Array.from({ length: 200 }, async () => {
    while (!isOver) {
      const answer = await rpc(postern.url, call, { session });
      await answer.arrayBuffer();
      counts.set(answer.status, (counts.get(answer.status) ?? 0) + 1);
      if (answer.status === 503) retryAfter.add(answer.headers.get('retry-after'));
    }
  });
  await expect.poll(() => counts.get(503) ?? 0, LONG).toBeGreaterThan(100);
  const served = counts.get(200) ?? 0;
  expect((await fetch(`${postern.url}/health`)).status).toBe(200);
  await expect.poll(() => counts.get(200) ?? 0, LONG).toBeGreaterThan(served + 50);
  isOver = true;
  await Promise.all(callers);
  expect([...counts.keys()].sort()).toEqual([200, 503]);
  expect([...retryAfter]).toEqual(['1']);

  const after = await Promise.all(
    Array.from({ length: 20 }, () => rpc(postern.url, call, { session })),
  );
  expect(after.map(({ status }) => status)).toEqual(Array(20).fill(200));
  const warnings = postern.log().filter(({ level }) => level === 'warn' || level === 'error');
  expect(warnings.map(({ msg }) => msg)).toEqual([expect.stringMatching(/^More calls come/)]);
});
