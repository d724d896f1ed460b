// A server behind a queue that answers each request with the name of its method.
import type { Upstream } from '../../../src/mcp/upstream/upstream.ts';
import type { UpstreamConfig, UpstreamFacts } from '../../../src/mcp/upstream/upstream-config.ts';
import type { ServerDescription } from '../../../src/servers/transport/transport.ts';

export interface QueueConfig extends UpstreamConfig {
  readonly kind: 'queue';
  readonly queue: string;
}

export const QUEUE_FACTS: UpstreamFacts = {
  personalBy: undefined,
  needsUser: false,
  connection: undefined,
  hasSessionStream: false,
  attributes: {},
};

export const describeQueue = ({ queue }: QueueConfig): ServerDescription => ({
  target: queue,
  auth: undefined,
  program: undefined,
  advice: `check the queue ${queue}.`,
  asking: undefined,
});

export const openQueue = (config: QueueConfig): Upstream => ({
  config,
  facts: QUEUE_FACTS,
  isUp: true,
  era: 'stateless',
  describe: async () => DESCRIPTION,
  peekDescription: () => DESCRIPTION,
  request: async (_caller, { method }) => ({ queue: config.queue, method }),
  listen: () => () => {},
  onStateChange() {},
  async endSession() {},
  async close() {},
});

const DESCRIPTION = {
  era: 'stateless',
  protocolVersion: '2026-07-28',
  capabilities: {},
  serverInfo: { name: 'queue', version: '1' },
  instructions: undefined,
} as const;
