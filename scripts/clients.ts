// npm run clients [-- [--latest] [--keep FOLDER] [--debug] [name…]]: MCP clients of npm and PyPI
// against a gateway of their own, one after the other, and a row of docs/clients.md for each.
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startBrowser } from './clients/browser.ts';
import { install, installNode, NotInstalled } from './clients/install.ts';
import { startTrialService } from './clients/service.ts';
import { startStubModel } from './clients/stub-model.ts';
import { CLIENTS, type TriedClient } from './clients/table.ts';
import { type Row, tryClient } from './clients/trial.ts';

const DRIVERS = fileURLToPath(new URL('./clients/drivers/', import.meta.url));

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    latest: { type: 'boolean', default: false },
    keep: { type: 'string' },
    debug: { type: 'boolean', default: false },
  },
});

const interruption = new AbortController();
const { signal } = interruption;
for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, () => interruption.abort());

const wanted = CLIENTS.filter(({ name }) => isWanted(name));
if (wanted.length === 0) {
  console.error(`No such client. There are: ${CLIENTS.map(({ name }) => name).join(', ')}.`);
  process.exit(2);
}
const root = resolve(values.keep ?? (await mkdtemp(join(tmpdir(), 'postern-clients-'))));
const how = { signal, latest: values.latest };
const browser = await startBrowser(join(await mkdtemp(join(tmpdir(), 'postern-browser-')), 'bin'));
const service = await startTrialService();
const model = await startStubModel();
try {
  const node = await installNode(join(root, 'node'), how);
  print([
    'Client',
    'Packages',
    'Protocol',
    'Log-in',
    'List',
    'Call',
    'Restart',
    'Refresh',
    'Both at once',
  ]);
  print(Array(9).fill('---'));
  for (const client of wanted) {
    if (signal.aborted) break;
    const row = await tryOne(client, node);
    if (typeof row === 'string') print([client.name, client.specs.join(' '), row]);
    else print([client.name, client.specs.join(' '), ...Object.values(row)]);
  }
} catch (error) {
  if (!(error instanceof NotInstalled)) throw error;
  console.error(`The clients cannot be tried: ${error.message}.`);
  process.exitCode = 1;
} finally {
  await service.close();
  model.close();
  browser.close();
  await rm(dirname(browser.folder), { recursive: true, force: true });
  if (values.keep === undefined) await rm(root, { recursive: true, force: true });
}
if (signal.aborted) process.exitCode = 1;

/** A row, or why there is none. */
async function tryOne(client: TriedClient, node: string | undefined): Promise<Row | string> {
  const folder = join(root, client.name.toLowerCase().replace(/[^a-z0-9]+/g, '-'));
  try {
    await install(client, folder, how);
  } catch (error) {
    if (error instanceof NotInstalled) return `not tried: ${error.message}`;
    throw error;
  }
  await cp(DRIVERS, folder, { recursive: true });
  for (const name of ['home', 'log-in', 'log-in.json']) {
    await rm(join(folder, name), { recursive: true, force: true });
  }
  await mkdir(join(folder, 'home'));
  for (const [path, content] of Object.entries(client.files ?? {})) {
    const file = join(folder, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, fill(content));
  }
  const bins = [browser.folder, join(folder, 'node_modules', '.bin'), node, process.env.PATH];
  return tryClient(client.commands, {
    service,
    signal,
    cwd: folder,
    env: {
      HOME: join(folder, 'home'),
      PATH: bins.filter(Boolean).join(':'),
      TERM: 'xterm-256color',
      LANG: 'C.UTF-8',
      DO_NOT_TRACK: '1',
      ...browser.env,
      ...Object.fromEntries(
        Object.entries(client.env ?? {}).map(([key, text]) => [key, fill(text)]),
      ),
    },
    fill,
    debug: (text) => {
      if (values.debug) console.error(text);
    },
  });
}

function fill(text: string): string {
  return text.replaceAll('{url}', service.mcpUrl).replaceAll('{model}', model.url);
}

function isWanted(name: string): boolean {
  const said = positionals.map((one) => one.toLowerCase());
  return said.length === 0 || said.some((one) => name.toLowerCase().includes(one));
}

function print(cells: readonly string[]): void {
  console.log(`| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`);
}
