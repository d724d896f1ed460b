// §18.3: tools that a program lists only for clients that it can ask, where its `isolation` lets it ask none.

import { type FetchedList, fetchList } from '../../../upstreams/catalog/fetch-list.ts';
import type {
  StdioUpstreamConfig,
  UpstreamConfig,
} from '../../../upstreams/config/upstream-config.ts';
import { GATEWAY_CALLER, type Upstream, type UpstreamCaller } from '../../../upstreams/upstream.ts';
import { type Finding, warning } from '../finding.ts';
import { describeNames } from './describe-names.ts';

const CHECK = 'server.isolation';

/** Who, in a process of its own, can be asked all. */
const ABLE_CALLER: UpstreamCaller = {
  ...GATEWAY_CALLER,
  clientId: 'postern doctor',
  capabilities: { elicitation: true, elicitationUrl: true, sampling: true, roots: true },
};

const isShared = (config: UpstreamConfig): config is StdioUpstreamConfig =>
  config.kind === 'stdio' && config.isolation === 'shared';

/** The same server, which can be asked as the gateway asks it, and as one of the clients that it could ask. */
export const allowOwnProcess = (config: UpstreamConfig): UpstreamConfig =>
  isShared(config) ? { ...config, isolation: 'user', maxProcesses: 2 } : config;

/** `upstream` is of what `allowOwnProcess` made of `config`; `tools` is what everybody sees. Never rejects. */
export async function checkIsolation(
  config: UpstreamConfig,
  upstream: Upstream,
  tools: FetchedList,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  if (!isShared(config)) return [];
  const seen = new Set(tools.items.map(({ name }) => name));
  // Some programs cannot run twice: that is no mistake of the settings.
  const able = await fetchList(upstream, 'tools', ABLE_CALLER, signal).catch(() => undefined);
  const hidden = able?.items.flatMap(({ name }) => (seen.has(name) ? [] : [String(name)])) ?? [];
  if (hidden.length === 0) return [];
  return [
    warning(CHECK, `Tools of ${config.name} that no client sees: ${describeNames(hidden)}.`, {
      why: 'It lists them only for clients that it can ask something. With "isolation": "shared" all users have one process, which cannot say whom it asks, so it is told that no client can be asked.',
      setting: 'POSTERN_CONFIG',
      remedy: `if they are needed, set "isolation": "user" for ${config.name} in the configuration file.`,
    }),
  ];
}
