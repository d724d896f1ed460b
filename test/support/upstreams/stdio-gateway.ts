// A program with one server on stdio, which prints its process ID and ends, without closing, when its input does.
import { createStdioUpstream } from '../../../src/upstreams/stdio/stdio-upstream.ts';
import { openProcessShare } from '../../../src/upstreams/transport/process-share.ts';
import { GATEWAY_CALLER } from '../../../src/upstreams/upstream.ts';
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
