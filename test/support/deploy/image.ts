// The image of the Dockerfile without an engine: each stage is a folder, in which its commands run as plain
// processes. What it starts is another user than the owner of the files, where the tests run as root.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import {
  chmod,
  copyFile,
  cp,
  lchown,
  mkdir,
  mkdtemp,
  readdir,
  stat,
  symlink,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { readStages, type Stage, type Step } from './dockerfile.ts';
import { readIgnored } from './dockerignore.ts';

export interface Image {
  /** Its file system. */
  readonly folder: string;
  readonly workdir: string;
  readonly env: Readonly<Record<string, string>>;
  readonly user: readonly number[];
  readonly entrypoint: readonly string[];
  readonly command: readonly string[];
  readonly healthcheck: readonly string[];
}

const CONTEXT = fileURLToPath(new URL('../../../', import.meta.url));
const EMPTY = { workdir: '/', env: {}, user: [], entrypoint: [], command: [], healthcheck: [] };
const BIN = 'usr/local/bin';
const isRoot = process.getuid?.() === 0;

/** Builds all stages below a folder of its own; resolves to the last one. */
export async function buildImage(): Promise<Image> {
  const place = await mkdtemp(join(tmpdir(), 'postern-image-'));
  // Another user has to get through.
  await chmod(place, 0o755);
  const built = new Map<string, Image>();
  let last: Image | undefined;
  for (const stage of await readStages()) {
    last = await buildStage(stage, join(place, stage.name ?? 'image'), built);
    if (stage.name !== undefined) built.set(stage.name, last);
  }
  if (last === undefined) throw new Error('The Dockerfile has no stage.');
  const { folder, workdir } = last;
  // The tests' own Node may lie where another user cannot go.
  await mkdir(join(folder, BIN), { recursive: true });
  await copyFile(process.execPath, join(folder, BIN, 'node'));
  await promisify(execFile)('chmod', ['-R', 'a-w', join(folder, workdir)]);
  return last;
}

async function buildStage(
  { from, steps }: Stage,
  folder: string,
  built: ReadonlyMap<string, Image>,
): Promise<Image> {
  const base = built.get(from);
  await mkdir(folder, { recursive: true });
  if (base !== undefined) await cp(base.folder, folder, { recursive: true });
  let image: Image = { ...(base ?? EMPTY), folder };
  for (const step of steps)
    image = { ...image, ...(await STEPS[step.keyword]?.(image, step, built)) };
  return image;
}

type Run = (
  image: Image,
  step: Step,
  built: ReadonlyMap<string, Image>,
) => Partial<Image> | undefined | Promise<Partial<Image> | undefined>;

const STEPS: Readonly<Record<string, Run>> = {
  RUN: runInside,
  COPY: copy,
  ENV: ({ env }, { words }) => ({
    env: { ...env, ...Object.fromEntries(words.map((word) => word.split(/=(.*)/s, 2))) },
  }),
  USER: (_image, { text }) => ({ user: text.split(':').map(Number) }),
  ENTRYPOINT: (_image, { words }) => ({ entrypoint: words }),
  CMD: (_image, { words }) => ({ command: words }),
  HEALTHCHECK: (_image, { text }) => ({ healthcheck: JSON.parse(text.replace(/^CMD /, '')) }),
  async WORKDIR({ folder }, { text }) {
    await mkdir(join(folder, text), { recursive: true });
    return { workdir: text };
  },
};

async function runInside({ folder, workdir, env }: Image, { text: command }: Step) {
  // What runs these tests has just done that, from the same lock file, and it takes long.
  if (command === 'npm ci --ignore-scripts') return linkPackages(join(folder, workdir));
  if (/(^|[\s=])\//.test(command)) throw new Error(`It names a path of the image: RUN ${command}`);
  // With what this checkout built, the build has nothing to do, unless it finds other sources than here.
  const built = command.startsWith('npm run build');
  if (built) await cp(join(CONTEXT, 'dist'), join(folder, workdir, 'dist'), { recursive: true });
  const run = built ? command.replace('npm run build', 'npm run build -- --if-stale') : command;
  const { PATH = '', HOME = '' } = process.env;
  await promisify(execFile)('sh', ['-ec', run], {
    cwd: join(folder, workdir),
    env: { PATH, HOME, npm_config_prefer_offline: 'true', npm_config_audit: 'false', ...env },
  });
  return undefined;
}

async function linkPackages(folder: string): Promise<undefined> {
  await promisify(execFile)('cp', ['-al', join(CONTEXT, 'node_modules'), folder]).catch(() =>
    // Another file system.
    symlink(join(CONTEXT, 'node_modules'), join(folder, 'node_modules')),
  );
  return undefined;
}

async function copy(image: Image, { words, flags }: Step, built: ReadonlyMap<string, Image>) {
  const sources = words.slice(0, -1);
  const target = resolve(image.workdir, words.at(-1) ?? '');
  const isInto = words.at(-1)?.endsWith('/') === true;
  const from = flags.from === undefined ? CONTEXT : built.get(flags.from)?.folder;
  if (from === undefined) throw new Error(`No stage ${flags.from}`);
  const isIgnored = flags.from === undefined ? await readIgnored(CONTEXT) : () => false;
  for (const source of sources) {
    const path = join(from, source);
    const to = join(image.folder, target, isInto ? source : '');
    const filter = (name: string) => !isIgnored(relative(from, name));
    if (!filter(path)) throw new Error(`.dockerignore leaves out what is copied: ${source}`);
    await cp(path, to, { recursive: true, verbatimSymlinks: true, filter });
    if (flags.chown !== undefined) await giveTo(to, flags.chown.split(':').map(Number));
  }
  return undefined;
}

async function giveTo(path: string, [user = 0, group = 0]: readonly number[]): Promise<void> {
  if (!isRoot) return;
  const names = (await stat(path)).isDirectory() ? await readdir(path, { recursive: true }) : [];
  for (const name of ['', ...names]) await lchown(join(path, name), user, group);
}

/** Starts it, or what is given in place of its command; all but its volume and a folder for what is temporary is read-only. */
export async function startImage(
  image: Image,
  env: Readonly<Record<string, string>>,
  command: readonly string[] = [...image.entrypoint, ...image.command],
): Promise<ChildProcess> {
  const { folder, workdir, user } = image;
  const inside = (word: string) => (word.startsWith('/') ? join(folder, word) : word);
  const own = Object.entries(image.env).map(([name, value]) => [name, inside(value)]);
  const [program = '', ...args] = command.map(inside);
  const [uid, gid] = user;
  return spawn(program, args, {
    cwd: join(folder, workdir),
    env: { PATH: join(folder, BIN), ...Object.fromEntries(own), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(isRoot && { uid, gid }),
  });
}
