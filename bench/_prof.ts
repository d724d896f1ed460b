import { runPostern } from './contestants.ts';
import { openStreams } from './measure-streams.ts';
import { openTestbed } from './testbed.ts';

const testbed = await openTestbed();
try {
  const server = await testbed.start(runPostern('redis', { MCP_STREAMS: 'true' }), {
    nodeOptions: ['--cpu-prof', '--cpu-prof-dir=/tmp/tails/prof'],
  });
  await openStreams(testbed, server, 0, 1500);
  await server.stop();
} finally {
  await testbed.close();
  process.exit(0);
}
