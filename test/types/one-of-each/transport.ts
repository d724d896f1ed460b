// A transport: servers that are reached by a queue. `queue.ts` speaks to them.
import { freeText } from '../../../src/config/file/shapes/scalar.ts';
import { defineMember } from '../../../src/config/file/shapes/shape.ts';
import { readCommon } from '../../../src/servers/config/common-members.ts';
import { defineTransport } from '../../../src/servers/transport/transport.ts';
import { describeQueue, openQueue, QUEUE_FACTS, type QueueConfig } from './queue.ts';

const queueMember = defineMember('queue', freeText(), 'The queue that it reads.');

export const queueTransport = defineTransport<QueueConfig>({
  kind: 'queue',
  types: { all: [], told: '"queue"' },
  addresses: [queueMember],
  members: [queueMember],
  words: { address: 'the name of a queue', server: 'a queue', whyNoOthers: '. A queue has none.' },
  verb: 'at',
  hasProcesses: false,
  build(members) {
    const queue = members.read(queueMember);
    if (queue === undefined) return undefined;
    return { kind: 'queue', queue, ...readCommon(members) };
  },
  complete: (config) => config,
  findFacts: () => QUEUE_FACTS,
  describe: describeQueue,
  open: (_runtime, config) => openQueue(config),
});
