// What npm run release refuses, in a checkout that has only what it is checked by.
import { execFileSync } from 'node:child_process';
import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { findSection } from '../../scripts/release/changelog.ts';
import { findReleaseProblems } from '../../scripts/release/find-problems.ts';
import { closeAfterTest } from '../support/lifetimes.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const FILES = ['package.json', 'package-lock.json', 'CHANGELOG.md', 'deploy/helm', 'examples'];

type Edit = readonly [file: string, from: string | RegExp, to: string];

const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
/** What a person does before a release. */
const READY: readonly Edit[] = [
  ['CHANGELOG.md', /^## (\S+).*$/m, `## ${version} - 2026-12-01`],
  ['package.json', 'replace-me.example', 'git.example.com'],
];

async function findProblems(edits: readonly Edit[], tag = `v${version}`) {
  const { path } = closeAfterTest(await createTemporaryFolder());
  for (const name of FILES) await cp(join(ROOT, name), join(path, name), { recursive: true });
  for (const [file, from, to] of edits) {
    const text = await readFile(join(path, file), 'utf8');
    await writeFile(join(path, file), text.replace(from, to));
  }
  const git = (...args: readonly string[]) =>
    execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.com', ...args], {
      cwd: path,
      stdio: 'pipe',
    });
  git('init', '--quiet');
  git('add', '--all');
  git('commit', '--quiet', '--message', 'Release');
  git('tag', tag);
  return { path, problems: findReleaseProblems(path) };
}

test('§9 release: what agrees can be released', async () => {
  expect((await findProblems(READY)).problems).toEqual([]);
});

test.each<[string, readonly Edit[], RegExp]>([
  [
    'the changelog has no date',
    [READY[1] as Edit],
    /^CHANGELOG.md: "## .* has to be "## \S+ - YYYY/,
  ],
  [
    'the changelog is of another version',
    [...READY, ['CHANGELOG.md', /^## \S+/m, '## 0.0.1']],
    /^CHANGELOG.md has no section/,
  ],
  [
    'the repository is a placeholder',
    [READY[0] as Edit],
    /^package.json: repository.url is a placeholder/,
  ],
  [
    'the chart is of another version',
    [...READY, ['deploy/helm/postern/Chart.yaml', /^version:.*$/m, 'version: 0.0.1']],
    /Chart.yaml: version is 0.0.1/,
  ],
  [
    'the starter takes another version',
    [...READY, ['examples/starter/package.json', /"version": ".*"/, '"version": "0.0.1"']],
    /starter\/package.json: version is 0.0.1/,
  ],
  [
    'the lock file is of another version',
    [...READY, ['package-lock.json', /"version": ".*"/, '"version": "0.0.1"']],
    /^package-lock.json: version is 0.0.1/,
  ],
])('§9 release: nothing is released if %s', async (_, edits, problem) => {
  const { problems } = await findProblems(edits);
  expect(problems).toEqual([expect.stringMatching(problem)]);
});

test('§9 release: nothing is released without its tag, or with changes that are not committed', async () => {
  const { path, problems } = await findProblems(READY, 'v0.0.1');
  expect(problems).toEqual([`The commit has no tag v${version}: git tag v${version}`]);
  await writeFile(join(path, 'new.txt'), '');
  expect(findReleaseProblems(path)[0]).toMatch(/^Not committed:\n\?\? new.txt/);
});

test('§9 release: the notes are what the changelog says of the version', () => {
  const section = findSection(
    '# C\n\n## 2.0.0 - 2026-12-01\n\n- New\n\n## 1.0.0\n\n- Old\n',
    '2.0.0',
  );
  expect(section).toEqual({ heading: '## 2.0.0 - 2026-12-01', text: '- New\n' });
});

test('§9 release: provenance is asked for where a version is published', async () => {
  const workflow = await readFile(join(ROOT, '.github/workflows/release.yaml'), 'utf8');
  const { jobs } = parse(workflow);
  expect(jobs.release.permissions['id-token']).toBe('write');
  expect(await readFile(join(ROOT, 'scripts/release.ts'), 'utf8')).toContain("'--provenance'");
});
