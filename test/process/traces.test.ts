// §21.2: the built service, with a collector and without one.
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { startCollector } from '../support/gateway/collector.ts';
import { endPosterns, makeFolder, startPostern } from '../support/gateway/process.ts';
import { closeAfterTest } from '../support/lifetimes.ts';

afterEach(endPosterns);

/** Writes down at the end which packages were loaded. */
const WITNESS = `process.on('exit', () => require('node:fs').writeFileSync(
  process.env.WITNESS, Object.keys(require.cache).join('\\n')));`;

async function listLoaded(env: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const folder = await makeFolder();
  const [script, loaded] = [join(folder, 'witness.cjs'), join(folder, 'loaded')];
  await writeFile(script, WITNESS);
  const postern = await startPostern({
    AUTH_REQUIRED: 'false',
    NODE_OPTIONS: `--require ${script}`,
    WITNESS: loaded,
    ...env,
  });
  await fetch(`${postern.url}/.well-known/oauth-protected-resource`);
  postern.kill('SIGTERM');
  expect(await postern.ended).toMatchObject({ code: 0 });
  const paths = (await readFile(loaded, 'utf8')).split('\n');
  const packages = paths.flatMap(
    (path) => /node_modules\/(@opentelemetry\/[^/]+)/.exec(path)?.[1] ?? [],
  );
  return [...new Set(packages)];
}

test('§21.2 traces: nothing of OpenTelemetry is loaded without a collector', async () => {
  expect(await listLoaded({})).toEqual([]);
  const collector = closeAfterTest(await startCollector());
  expect(await listLoaded(collector.env)).toContain('@opentelemetry/sdk-trace');
  // What was not sent yet is sent at the end.
  expect(collector.spans().map(({ name }) => name)).toContain(
    'GET /.well-known/oauth-protected-resource',
  );
});
