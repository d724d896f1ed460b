// Other versions of Node.js than the one that runs: each is a package of npm, in npm's cache and nowhere else.
import { execFileSync } from 'node:child_process';

/** By major version. That of the LTS is the one that .ci/run tests on. */
const VERSIONS: Readonly<Record<string, string>> = { '24': '24.21.0', '26': '26.12.1' };

export interface NodeVersion {
  /** As `--node` takes it. */
  readonly major: string;
  readonly version: string;
  /** The program. */
  readonly program: string;
}

export const ownNode: NodeVersion = {
  major: process.versions.node.split('.')[0] ?? '',
  version: process.versions.node,
  program: process.execPath,
};

/** The one that runs first: the others are compared with it. */
export function findNodes(majors: readonly string[]): readonly NodeVersion[] {
  const unknown = majors.filter((major) => VERSIONS[major] === undefined);
  if (unknown.length > 0) {
    const known = Object.keys(VERSIONS).join(' and ');
    throw new Error(`--node takes ${known}, not ${unknown.join(', ')}.`);
  }
  return [ownNode, ...majors.filter((major) => major !== ownNode.major).map(install)];
}

function install(major: string): NodeVersion {
  const version = VERSIONS[major] ?? '';
  const spec = `node-${process.platform}-${process.arch}@${version}`;
  const program = execFileSync(
    'npx',
    ['--yes', '--ignore-scripts', `--package=${spec}`, '--', 'sh', '-c', 'command -v node'],
    { encoding: 'utf8' },
  ).trim();
  return { major, version, program };
}
