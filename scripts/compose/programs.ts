// The stand-in for each image in compose.yaml: Debian's packages, and the service of this checkout.
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ensureCommand } from '../../test/support/tools/debian.ts';
import type { Program } from '../../test/support/tools/server-process.ts';
import type { Addresses } from './addresses.ts';
import { ROOT, type Service } from './read-compose.ts';

interface Place {
  readonly name: string;
  readonly addresses: Addresses;
  /** Its own folder, empty. */
  readonly folder: string;
}

type Prepare = (service: Service, place: Place) => Promise<Program>;

const IMAGES: readonly (readonly [RegExp, Prepare])[] = [
  [/^postern$/, preparePostern],
  [/^valkey\/valkey:/, prepareValkey],
  [/^haproxy:/, prepareHaproxy],
];

/** @throws Error for an image without a stand-in. */
export function prepareProgram(service: Service, place: Place): Promise<Program> {
  const prepare = IMAGES.find(([image]) => image.test(service.image))?.[1];
  if (prepare === undefined) throw new Error(`No program stands in for ${service.image}`);
  return prepare(service, place);
}

const MAIN = ['node', '/app/dist/cli/main.js', 'start'];

async function preparePostern(service: Service, { name, addresses, folder }: Place) {
  const { entrypoint = MAIN, environment = {} } = service;
  const [, ...args] = entrypoint;
  const settings = Object.entries(environment).map(([key, value]) => [
    key,
    addresses.translate(value),
  ]);
  return {
    command: process.execPath,
    args: args.map((word) => word.replace(/^\/app\//, fileURLToPath(ROOT))),
    env: {
      // Set by the image.
      NODE_ENV: 'production',
      DATA_DIR: folder,
      ...Object.fromEntries(settings),
      HOST: '127.0.0.1',
      PORT: String(addresses.getPort(name)),
    },
  };
}

/** Redis 7 instead: both speak the same protocol. */
async function prepareValkey({ command = [] }: Service, { name, addresses, folder }: Place) {
  ensureCommand('redis-server', 'redis-server');
  const here = ['--bind', '127.0.0.1', '--port', String(addresses.getPort(name)), '--dir', folder];
  return { command: 'redis-server', args: [...command.slice(1), ...here] };
}

async function prepareHaproxy({ volumes = [] }: Service, { name, addresses, folder }: Place) {
  ensureCommand('haproxy', 'haproxy');
  const [source = ''] = volumes[0]?.split(':') ?? [];
  const config = addresses
    .translate(await readFile(new URL(source, ROOT), 'utf8'))
    .replace(/^( +bind) :\d+$/m, `$1 127.0.0.1:${addresses.getPort(name)}`);
  const file = join(folder, 'haproxy.cfg');
  await writeFile(file, config);
  return { command: 'haproxy', args: ['-db', '-f', file] };
}
