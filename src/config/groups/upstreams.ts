// What stands behind the gateway, as far as the configuration file does not say it.
import { integer, systemUser } from '../rules.ts';
import { defineSetting, NO_DEFAULT, type Read } from '../setting.ts';

export interface UpstreamsConfig {
  /** Bytes of an answer of a server, or of one event where it answers by a stream. */
  readonly maxBytes: number;
  /** The user of servers that are programs and have no `runAs`; undefined for the gateway's own. */
  readonly runProgramsAs: string | undefined;
}

export const upstreamSettings = {
  maxUpstreamBytes: defineSetting({
    variable: 'MAX_UPSTREAM_BYTES',
    rule: integer(1024, 268_435_456),
    default: { value: 8_388_608 },
    summary: 'The most bytes of one answer of an MCP server behind the gateway.',
    details: 'Of a stream, of each event. A call whose answer is longer ends in an error result.',
  }),
  runProgramsAs: defineSetting<string | undefined>({
    variable: 'RUN_PROGRAMS_AS',
    rule: systemUser,
    default: NO_DEFAULT,
    summary: 'The user of the system that MCP servers run as that are programs.',
    details:
      'Such as `postern-programs` or `1001:1001`. `runAs` of a server wins. Without it they run as the user of the gateway, and can read its secrets. Linux only; the gateway has to be root, or to have the capabilities SETUID, SETGID and KILL ([how](deploy.md#programs-as-another-user)).',
  }),
};

export const readUpstreamsConfig = (read: Read): UpstreamsConfig => ({
  maxBytes: read(upstreamSettings.maxUpstreamBytes),
  runProgramsAs: read(upstreamSettings.runProgramsAs),
});
