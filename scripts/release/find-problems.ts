// Finds disagreements before a release: tag, versions, changelog, repository.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { findSection, hasDate } from './changelog.ts';

/** A place, other than package.json, that has the version: the file, and the way to it. */
const VERSIONS: readonly (readonly [file: string, ...path: string[]])[] = [
  ['package-lock.json', 'version'],
  ['package-lock.json', 'packages', '', 'version'],
  ['deploy/helm/postern/Chart.yaml', 'version'],
  ['deploy/helm/postern/Chart.yaml', 'appVersion'],
  ['examples/starter/package.json', 'version'],
];

/** Sentences; none when the folder, a checkout, can be released. */
export function findReleaseProblems(folder: string): readonly string[] {
  const { version, repository } = readData(folder, 'package.json');
  return [
    ...findTreeProblems(folder, version),
    ...VERSIONS.flatMap(([file, ...path]) => {
      const found = path.reduce((value, name) => value?.[name], readData(folder, file));
      if (found === version) return [];
      return [
        `${file}: ${path.filter(Boolean).join('.')} is ${found}, package.json has ${version}.`,
      ];
    }),
    ...findChangelogProblems(folder, version),
    // Provenance says which repository a package comes from: npm compares the two.
    ...(repository.url.includes('replace-me')
      ? [`package.json: repository.url is a placeholder (${repository.url}).`]
      : []),
  ];
}

function findTreeProblems(folder: string, version: string): readonly string[] {
  const git = (...args: readonly string[]) =>
    execFileSync('git', args, { cwd: folder, encoding: 'utf8' }).trim();
  const changed = git('status', '--porcelain');
  const tags = git('tag', '--points-at', 'HEAD').split('\n');
  return [
    ...(changed === '' ? [] : [`Not committed:\n${changed}`]),
    ...(tags.includes(`v${version}`)
      ? []
      : [`The commit has no tag v${version}: git tag v${version}`]),
  ];
}

function findChangelogProblems(folder: string, version: string): readonly string[] {
  const section = findSection(readFileSync(join(folder, 'CHANGELOG.md'), 'utf8'), version);
  if (section === undefined) return [`CHANGELOG.md has no section ${version} at its top.`];
  if (hasDate(section)) return [];
  return [`CHANGELOG.md: "${section.heading}" has to be "## ${version} - YYYY-MM-DD".`];
}

function readData(folder: string, file: string) {
  const text = readFileSync(join(folder, file), 'utf8');
  // JSON is YAML, too.
  return parse(text);
}
