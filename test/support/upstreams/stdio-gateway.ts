// A program with one server on stdio, which prints its process ID and ends, without closing, when its input does.
import { systemClock } from '../../../src/platform/clock.ts';
import { createStdioUpstream } from '../../../src/upstreams/stdio/stdio-upstream.ts';
import { createAnswerMemory } from '../../../src/upstreams/transport/answer-memory.ts';
import { createMessagePace } from '../../../src/upstreams/transport/message-pace.ts';
import { GATEWAY_CALLER } from '../../../src/upstreams/upstream.ts';
import { collectLog } from '../gateway/log.ts';
import { STDIO_DEFAULTS, scripted, textOf, toCall } from './stdio-calls.ts';

const upstream = createStdioUpstream(
  { ...STDIO_DEFAULTS, ...scripted(...process.argv.slice(2)) },
  {
    clock: systemClock,
    log: collectLog().log,
    maxBytes: 1_000_000,
    answerMemory: createAnswerMemory(systemClock, 1_000_000),
    messagePace: createMessagePace(systemClock),
    environment: process.env,
    inheritedFiles: [],
    isSessionActive: async () => true,
  },
);
process.stdin.on('end', () => process.exit(1)).resume();
// Nothing else keeps it alive where its input is not open.
setInterval(() => {}, 1000);
process.stdout.write(textOf(await upstream.request(GATEWAY_CALLER, toCall('pid'))));
