// §5: WORKERS=auto, by the files in which Linux tells a process its limit of CPUs.
import { mkdir, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { countQuotaCpus, countWorkers } from '../../../src/cli/serve/start.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { createTemporaryFolder } from '../../support/temporary-folder.ts';

const NO_LIMIT = Number.POSITIVE_INFINITY;

test.each([
  { what: 'no control groups', files: {}, cpus: NO_LIMIT },
  { what: 'a container without a limit', files: { '': 'max 100000' }, cpus: NO_LIMIT },
  { what: 'a container with --cpus=2', files: { '': '200000 100000' }, cpus: 2 },
  { what: 'a container with --cpus=2.9', files: { '': '290000 100000' }, cpus: 2 },
  { what: 'a container with --cpus=0.5', files: { '': '50000 100000' }, cpus: 1 },
  {
    what: 'a unit whose slice has less',
    group: '/app.slice/postern.service',
    files: { '/app.slice/postern.service': '800000 100000', '/app.slice': '300000 100000' },
    cpus: 3,
  },
])('§5 WORKERS=auto: $what: $cpus CPUs', async ({ group = '/', files, cpus }) => {
  const root = closeAfterTest(await createTemporaryFolder()).path;
  const write = async (file: string, text: string) => {
    await mkdir(dirname(join(root, file)), { recursive: true });
    await writeFile(join(root, file), text);
  };
  await write('proc/self/cgroup', `0::${group}\n`);
  for (const [folder, limit] of Object.entries(files)) {
    await write(`sys/fs/cgroup${folder}/cpu.max`, `${limit}\n`);
  }
  expect(countQuotaCpus(root)).toBe(cpus);
});

test('§5 WORKERS: a number is taken as it is, and auto is at most one for each CPU', () => {
  expect(countWorkers(3)).toBe(3);
  expect(countWorkers('auto')).toBeGreaterThanOrEqual(1);
  expect(countWorkers('auto')).toBeLessThanOrEqual(availableParallelism());
});
