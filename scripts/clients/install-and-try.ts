// One client of the table: installed, given its files and its own home, and tested.
import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TrialBrowser } from './browser.ts';
import { type Installer, install, installedVersion } from './install.ts';
import { startTrialService } from './service.ts';
import type { StubModel } from './stub-model.ts';
import type { TriedClient } from './table.ts';
import { type Row, tryClient } from './trial.ts';

export interface TrialContext {
  /** Each client has its own folder in it. */
  readonly root: string;
  readonly how: Omit<Installer, 'node'>;
  readonly browser: TrialBrowser;
  readonly model: StubModel;
  /** A folder with a Node for PATH, where ours is too old. */
  readonly node: string | undefined;
  readonly debug: (text: string) => void;
}

const DRIVERS = fileURLToPath(new URL('./drivers/', import.meta.url));
const TTL_SECONDS = 20;
const LIMIT_SECONDS = 60;
/** Leftovers of an earlier run. */
const KEPT = ['home', 'login-state', 'login.json'];

/** @throws NotInstalled */
export async function installAndTry(client: TriedClient, context: TrialContext) {
  const { root, how, browser, model, node, debug } = context;
  const cwd = join(root, client.name.toLowerCase().replace(/[^a-z0-9]+/g, '-'));
  await install(client, cwd, { ...how, node });
  const service = await startTrialService(client.ttlSeconds ?? TTL_SECONDS);
  const fill = (text: string) =>
    text.replaceAll('{url}', service.mcpUrl).replaceAll('{model}', model.url);
  const bins = [browser.folder, join(cwd, 'node_modules', '.bin'), node, process.env.PATH];
  const env = {
    HOME: join(cwd, 'home'),
    PATH: bins.filter(Boolean).join(':'),
    TERM: 'xterm-256color',
    LANG: 'C.UTF-8',
    DO_NOT_TRACK: '1',
    ...browser.env,
    ...mapValues(client.env ?? {}, fill),
  };
  try {
    await writeFiles(cwd, mapValues(client.files ?? {}, fill));
    const limitMs = 1000 * (client.limitSeconds ?? LIMIT_SECONDS);
    const stage = { service, cwd, env, fill, limitMs, signal: how.signal, debug };
    const row: Row = await tryClient(client.commands, stage);
    return { version: await installedVersion(client, cwd), ...row };
  } finally {
    await service.close();
  }
}

async function writeFiles(cwd: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const name of KEPT) await rm(join(cwd, name), { recursive: true, force: true });
  await mkdir(join(cwd, 'home'));
  await cp(DRIVERS, cwd, { recursive: true });
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(cwd, path)), { recursive: true });
    await writeFile(join(cwd, path), content);
  }
}

const mapValues = (
  record: Readonly<Record<string, string>>,
  change: (value: string) => string,
): Record<string, string> =>
  Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]));
