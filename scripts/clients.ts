// npm run clients [-- [--latest] [--keep FOLDER] [--debug] [name…]]: MCP clients of npm and PyPI
// against a gateway with a development provider, one after the other, a row of a table for each.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { startBrowser } from './clients/browser.ts';
import { installNode, NotInstalled } from './clients/install.ts';
import { installAndTry, type TrialContext } from './clients/install-and-try.ts';
import { startStubModel } from './clients/stub-model.ts';
import { CLIENTS, type TriedClient } from './clients/table.ts';
import { readOptions } from './read-options.ts';

const COLUMNS =
  'Client | Version | Protocol | Login | List | Call | Restart | Refresh | Both in one connection';

const NAMES = CLIENTS.map(({ name }) => name).join(', ');

const USAGE = `Usage: npm run clients -- [options] [name…]

Tries MCP clients of npm and PyPI against a gateway with a development provider, and prints a table.
Without a name it tries all; a part of a name is enough: ${NAMES}.

  --latest         their newest versions
  --keep FOLDER    install them there, and leave them
  --debug          print what they print
  --help           this text`;

const { values, positionals } = readOptions(USAGE, {
  allowPositionals: true,
  options: {
    latest: { type: 'boolean', default: false },
    keep: { type: 'string' },
    debug: { type: 'boolean', default: false },
  },
});
const wanted = CLIENTS.filter(({ name }) => isWanted(name));
if (wanted.length === 0) {
  console.error(`No such client. There are: ${NAMES}.`);
  process.exit(2);
}

const interruption = new AbortController();
const { signal } = interruption;
for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => interruption.abort());

const temporary = await mkdtemp(join(tmpdir(), 'postern-clients-'));
const root = resolve(values.keep ?? temporary);
const browser = await startBrowser(join(temporary, 'browser'));
const model = await startStubModel();
try {
  const how = { signal, latest: values.latest };
  const node = await installNode(join(root, 'node'), signal);
  console.log(`| ${COLUMNS} |\n|${' --- |'.repeat(COLUMNS.split('|').length)}`);
  for (const client of wanted) {
    const cells = await createRow(client, { root, how, browser, model, node, debug });
    if (signal.aborted) break;
    console.log(`| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`);
  }
} catch (error) {
  if (!(error instanceof NotInstalled)) throw error;
  console.error(`The clients cannot be tried: ${error.message}.`);
  process.exitCode = 1;
} finally {
  model.close();
  browser.close();
  await rm(temporary, { recursive: true, force: true });
}
if (signal.aborted) process.exitCode = 1;

async function createRow(client: TriedClient, context: TrialContext): Promise<readonly string[]> {
  try {
    return [client.name, ...Object.values(await installAndTry(client, context))];
  } catch (error) {
    if (!(error instanceof NotInstalled)) throw error;
    return [client.name, `not tried: ${error.message}`];
  }
}

function debug(text: string): void {
  if (values.debug) console.error(text);
}

function isWanted(name: string): boolean {
  const said = positionals.map((one) => one.toLowerCase());
  return said.length === 0 || said.some((one) => name.toLowerCase().includes(one));
}
