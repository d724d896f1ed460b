// Tools of the npm registry that are not among our own packages: those have to install on Node 20.
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { oneAtATime } from './one-at-a-time.ts';

/** The tools ask for more than the product does. */
const NODE_MAJOR = 22;
/** Plain binaries of Node, for whoever has an older one; there is no such package but for Linux. */
const NODE = `node-linux-${process.arch}@24.21.0`;

/** Enough for a slow line: some 60 MB, or more, where nothing is in npm's cache. */
export const INSTALLATION_MS = 300_000;

/** To be run as `node script …`. */
export interface NpxTool {
  readonly node: string;
  readonly script: string;
}

export interface NpxToolSource {
  /** With its exact version. */
  readonly name: string;
  readonly command: string;
}

const installed = new Map<string, Promise<NpxTool>>();

/** Brings a tool by npx into npm's cache, with no install scripts, and a Node that can run it. */
export function installNpxTool(source: NpxToolSource): Promise<NpxTool> {
  const tool = installed.get(source.name) ?? install(source);
  installed.set(source.name, tool);
  return tool;
}

/** One at a time: npx itself lets two installations of the same set run into each other. */
async function install({ name, command }: NpxToolSource): Promise<NpxTool> {
  const isNewEnough = Number.parseInt(process.versions.node, 10) >= NODE_MAJOR;
  const packages = isNewEnough ? [name] : [NODE, name];
  return inFolder(async (cwd) => {
    const { stdout } = await oneAtATime('npx', () =>
      promisify(execFile)(
        'npx',
        [
          '--yes',
          '--ignore-scripts',
          ...packages.map((one) => `--package=${one}`),
          '--',
          'sh',
          '-c',
          `command -v node; command -v ${command}`,
        ],
        { cwd, timeout: INSTALLATION_MS },
      ),
    );
    const [node, script] = stdout.trim().split('\n');
    if (!node || !script) throw new Error(`npx brought no ${packages.join(' and ')}: ${stdout}`);
    return { node, script };
  });
}

/** A folder for the time of `work`. */
export async function inFolder<Result>(work: (path: string) => Promise<Result>): Promise<Result> {
  const path = await mkdtemp(join(tmpdir(), 'postern-tool-'));
  try {
    return await work(path);
  } finally {
    await rm(path, { recursive: true, force: true });
  }
}
