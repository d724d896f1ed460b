// What stands behind the gateway, as far as the configuration file does not say it.
import { integer } from '../rules.ts';
import { defineSetting, type Read } from '../setting.ts';

export interface UpstreamsConfig {
  /** Bytes of an answer of a server, or of one event where it answers by a stream. */
  readonly maxBytes: number;
}

export const upstreamSettings = {
  maxUpstreamBytes: defineSetting({
    variable: 'MAX_UPSTREAM_BYTES',
    rule: integer(1024, 268_435_456),
    default: { value: 8_388_608 },
    summary: 'The most bytes of one answer of an MCP server behind the gateway.',
    details: 'Of a stream, of each event. A call whose answer is longer ends in an error result.',
  }),
};

export const readUpstreamsConfig = (read: Read): UpstreamsConfig => ({
  maxBytes: read(upstreamSettings.maxUpstreamBytes),
});
