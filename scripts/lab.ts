// npm run lab [-- [--port N] [--gateway URL] [name…]]: imitations of providers on this machine, to try a client or
// a gateway against them without an account anywhere. By name, each with a gateway in front of it.
import { handleProcessEnd } from '../src/cli/command-line/process-end.ts';
import { createLog } from '../src/platform/log.ts';
import { EMULATED } from '../test/support/providers/emulators.ts';
import { printLab } from './lab/print-lab.ts';
import { type LabOptions, startLab } from './lab/start-lab.ts';
import { readOptions } from './read-options.ts';

const FIRST_PORT = 4400;
const MAX_PORT = 65_500;

const USAGE = `Usage: npm run lab -- [options] [name…]

Starts providers that behave as the real ones do, each at an address of its own on this machine, until Ctrl+C.
By name, each with a gateway in front of it, ready for an MCP client. There are:
${[...EMULATED.keys()].join(', ')}.

  --port N         the first port; the others follow (default ${FIRST_PORT})
  --gateway URL    the address of your own gateway, which is told of logouts (default http://localhost:3000)
  --debug          the gateways print all that they log
  --help           this text`;

const options = readLabOptions();
const log = createLog(options.logLevel, { format: 'text' });
const starting = startLab(options, log);
handleProcessEnd(log, async () => (await starting).close());
starting.then(printLab, (error: unknown) => {
  console.error(error instanceof Error ? error.message : String(error));
  process.exit(1);
});

function readLabOptions(): LabOptions {
  const { values, positionals: names } = readOptions(USAGE, {
    allowPositionals: true,
    options: {
      port: { type: 'string', default: String(FIRST_PORT) },
      gateway: { type: 'string', default: 'http://localhost:3000' },
      debug: { type: 'boolean', default: false },
    },
  });
  const unknown = names.filter((name) => !EMULATED.has(name));
  const port = Number(values.port);
  const problem =
    (unknown.length > 0 && `There is no ${unknown.join(', ')} here.`) ||
    (!(Number.isInteger(port) && port > 0 && port <= MAX_PORT) &&
      `--port must be a number from 1 to ${MAX_PORT}.`) ||
    (!URL.canParse(values.gateway) &&
      '--gateway must be an address, such as http://localhost:3000.');
  if (problem) {
    console.error(`${problem}\n\n${USAGE}`);
    process.exit(2);
  }
  return { names, port, gatewayUrl: values.gateway, logLevel: values.debug ? 'debug' : 'warn' };
}
