// What stands behind the gateway, as far as the configuration file does not say it.
import { integer, systemUser } from '../rules.ts';
import { defineSetting } from '../setting.ts';

export const upstreamSettings = {
  maxBytes: defineSetting('MAX_UPSTREAM_BYTES', integer(1024, 268_435_456), {
    default: { value: 8_388_608 },
    summary: 'The most bytes of one answer of an MCP server behind the gateway.',
    details: 'Of a stream, of each event. A call whose answer is longer ends in an error result.',
  }),
  listWaitMs: defineSetting('LIST_WAIT_MS', integer(0, 60_000), {
    default: { value: 5_000 },
    summary: 'Milliseconds that a first list waits for a server that has not answered yet.',
    details:
      'Then the list goes out without that server, and clients get `list_changed` once it has answered. Clients that cannot get that wait up to 8 s ([how](reference/server-connections.md#184-when-a-server-fails)).',
  }),
  runProgramsAs: defineSetting('RUN_PROGRAMS_AS', systemUser, {
    summary: 'The user of the system that MCP servers run as that are programs.',
    details:
      'Such as `postern-programs` or `1001:1001`. `runAs` of a server wins. Without it they run as the user of the gateway, and can read its secrets. Linux only; the gateway has to be root, or to have the capabilities SETUID, SETGID and KILL ([how](deploy.md#programs-as-another-user)).',
  }),
};
