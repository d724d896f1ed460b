import type { StdioUpstreamConfig } from '../../src/core/gateway-file/gateway-file.ts';
import { openStdio } from '../support/upstreams/stdio.ts';
import { supportFile } from '../support/upstreams/stdio-calls.ts';
import { describeUpstream, type UpstreamHarness } from './upstream.contract.ts';

const openTo =
  (file: string, isolation: StdioUpstreamConfig['isolation']) =>
  async (timeoutMs: number): Promise<UpstreamHarness> => {
    const args = ['--import', 'tsx', supportFile(file)];
    const { upstream } = openStdio({ command: process.execPath, args, isolation, timeoutMs });
    return { upstream, close: () => upstream.close(0) };
  };

describeUpstream(
  'stdio with sessions, shared',
  { era: 'session', canAsk: false },
  openTo('contract-server-1.ts', 'shared'),
);
describeUpstream(
  'stdio with sessions, one process for each user',
  { era: 'session', canAsk: true },
  openTo('contract-server-1.ts', 'user'),
);
describeUpstream(
  'stdio without sessions, shared',
  { era: 'stateless', canAsk: false },
  openTo('contract-server-2.ts', 'shared'),
);
describeUpstream(
  'stdio without sessions, one process for each session',
  { era: 'stateless', canAsk: true },
  openTo('contract-server-2.ts', 'session'),
);
