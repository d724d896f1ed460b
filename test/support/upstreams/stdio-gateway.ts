// A program with one server on stdio, which prints its process ID and ends, without closing, when its input does.

import { GATEWAY_CALLER } from '../../../src/mcp/upstream/upstream.ts';
import { createStdioUpstream } from '../../../src/servers/stdio/stdio-upstream.ts';
import { openProcessShare } from '../../../src/servers/transport/process-share.ts';
import { openTestRuntime } from '../gateway/runtime.ts';
import { STDIO_DEFAULTS, scripted, textOf, toCall } from './stdio-calls.ts';

const runtime = openTestRuntime();
const upstream = createStdioUpstream(
  runtime,
  { ...STDIO_DEFAULTS, ...scripted(...process.argv.slice(2)) },
  openProcessShare(runtime, true),
  { environment: process.env, inheritedFiles: [] },
);
process.stdin.on('end', () => process.exit(1)).resume();
// Nothing else keeps it alive where its input is not open.
setInterval(() => {}, 1000);
process.stdout.write(textOf(await upstream.request(GATEWAY_CALLER, toCall('pid'))));
