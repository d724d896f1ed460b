// npm run compose: runs the services in compose.yaml without Docker, until Ctrl+C.
import { once } from 'node:events';
import { freePort } from '../test/support/gateway/ports.ts';
import { startTopology } from './compose/start-topology.ts';
import { readOptions } from './read-options.ts';

const USAGE = `Usage: npm run compose

Starts what compose.yaml describes, without Docker: two gateways behind HAProxy, with Redis and a
provider at which any name logs in. It takes no options, and runs until Ctrl+C.`;

readOptions(USAGE, {});

// From the beginning, so that no process is left running.
const interrupted = Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
const topology = await startTopology(async (published) => published ?? (await freePort()));
console.log(`Two gateways behind HAProxy: add ${topology.url}/mcp to a client, and log in with any name.
  gateway-1  ${topology.getUrl('gateway-1')}
  gateway-2  ${topology.getUrl('gateway-2')}
Press Ctrl+C to stop.`);
await interrupted;
await topology.close();
